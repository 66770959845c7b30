#include "session/absence.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>

#include "session/settings.h"

namespace maya::session {
namespace {

std::string mark_of(int rank) {
  const char* run = std::getenv("MAYA_RUN_DIR");
  return (run != nullptr ? std::string(run) : std::string()) + "/exchange/done-" +
         std::to_string(rank);
}

bool runs(int rank) {
  const auto& ranks = ranks_that_run();
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

// Sleeps until everybody who runs is done, or the launcher is gone.
void stay_away() {
  const pid_t launcher = getppid();
  auto done = [](int rank) { return access(mark_of(rank).c_str(), F_OK) == 0; };
  const auto& ranks = ranks_that_run();
  while (getppid() == launcher && !std::all_of(ranks.begin(), ranks.end(), done)) {
    timespec pause{0, 300'000'000};
    nanosleep(&pause, nullptr);
  }
  syscall(SYS_exit_group, 0);
}

__attribute__((constructor)) void attend() {
  if (ranks_that_run().empty()) return;
  const int rank = rank_in_environment();
  if (rank < 0) return;  // the launcher itself, or a job of one
  if (!runs(rank)) stay_away();
  std::atexit(leave_job);
}

}  // namespace

const std::vector<int>& ranks_that_run() {
  static const std::vector<int>* ranks = [] {
    auto* list = new std::vector<int>;
    const char* text = std::getenv("MAYA_RANKS");
    while (text != nullptr && *text != '\0') {
      char* end = nullptr;
      const long rank = std::strtol(text, &end, 10);
      if (end == text) break;
      list->push_back(static_cast<int>(rank));
      text = *end == ',' ? end + 1 : end;
    }
    std::sort(list->begin(), list->end());
    return list;
  }();
  return *ranks;
}

void leave_job() {
  const int rank = rank_in_environment();
  if (ranks_that_run().empty() || rank < 0) return;
  const std::string mark = mark_of(rank);
  mkdir(mark.substr(0, mark.rfind('/')).c_str(), 0755);
  const int file = ::open(mark.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (file >= 0) ::close(file);
}

}  // namespace maya::session
