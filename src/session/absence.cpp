#include "session/absence.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <string>

#include "session/settings.h"
#include "session/state.h"

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

void set(const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); }

int number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : -1;
}

// The process that the launcher started as a rank: the rank is not done when another one is.
constexpr const char* owner_variable = "MAYA_RANK_PROCESS";

bool is_the_rank() { return number(owner_variable) == getpid(); }

// Where the environment does not say it and the program does (maya_take_rank).
int learned_rank = -1;

int own_rank() { return learned_rank >= 0 ? learned_rank : rank_in_environment(); }

// What a process did before it said that it is a rank that does not run.
void forget_recording() {
  state().recorder.abandon();
  const std::string path =
      state().settings.run_directory + "/process-" + std::to_string(getpid()) + ".maya";
  unlink(path.c_str());
  unlink((path + ".tail").c_str());
}

void stay() {
  owns_rank();
  std::atexit(leave_job);
}

std::vector<int> ranks_in_environment() {
  std::vector<int> list;
  const char* text = std::getenv("MAYA_RANKS");
  while (text != nullptr && *text != '\0') {
    char* end = nullptr;
    const long rank = std::strtol(text, &end, 10);
    if (end == text) break;
    list.push_back(static_cast<int>(rank));
    text = *end == ',' ? end + 1 : end;
  }
  std::sort(list.begin(), list.end());
  return list;
}

// Never destroyed: processes that end ask it.
std::vector<int>& listed() {
  static auto* ranks = new std::vector<int>(ranks_in_environment());
  return *ranks;
}

__attribute__((constructor)) void attend() { attend_job(); }

}  // namespace

const std::vector<int>& ranks_that_run() { return listed(); }

void attend_job() {
  listed() = ranks_in_environment();
  if (ranks_that_run().empty()) return;
  if (number(away_variable) > 0) stay_away();
  take_place();
  const int rank = rank_in_environment();
  if (rank < 0) return;  // the launcher itself, or a job of one
  if (!runs(rank)) stay_away();
  stay();
}

// The launcher was asked for one process per rank that runs and counts them from 0. MAYA_PLACES,
// "ranks of the job:ranks of a node", says that each is to be its rank of the whole job. Children
// inherit what is set here, so it happens once.
void take_place() {
  const char* places = std::getenv("MAYA_PLACES");
  const auto& ranks = ranks_that_run();
  const int number_here = number("RANK");
  if (places == nullptr || number_here < 0 || number("WORLD_SIZE") != std::ssize(ranks)) return;
  char* rest = nullptr;
  const int world = static_cast<int>(std::strtol(places, &rest, 10));
  const int per_node = *rest == ':' ? std::atoi(rest + 1) : 0;
  if (number_here >= std::ssize(ranks) || per_node < 1) return;
  const int rank = ranks[static_cast<std::size_t>(number_here)];
  set("RANK", rank), set("ROLE_RANK", rank);
  set("WORLD_SIZE", world), set("ROLE_WORLD_SIZE", world);
  set("LOCAL_RANK", rank % per_node), set("LOCAL_WORLD_SIZE", per_node);
  set("GROUP_RANK", rank / per_node), set("GROUP_WORLD_SIZE", world / per_node);
  set("NODE_RANK", rank / per_node);
  unsetenv("MAYA_PLACES");
}

bool owns_rank() {
  if (number(owner_variable) < 0) set(owner_variable, getpid());
  return is_the_rank();
}

// The program has said which rank it is, perhaps long after it began.
extern "C" MAYA_EXPORT void maya_take_rank(int rank, int world_size) {
  if (ranks_that_run().empty() || number(owner_variable) >= 0) return;
  if (!runs(rank)) {
    forget_recording();
    stay_away();
  }
  learned_rank = rank;
  stay();
  State& s = state();
  if (s.settings.rank >= 0) return;
  s.settings.rank = rank;
  s.settings.world_size = world_size;
  if (s.settings.local_rank < 0 && s.settings.cluster.gpus_per_node > 0)
    s.settings.local_rank = rank % s.settings.cluster.gpus_per_node;
  s.recorder.learn_rank(rank, world_size);
}

void leave_job() {
  const int rank = own_rank();
  if (ranks_that_run().empty() || rank < 0 || !is_the_rank()) return;
  const std::string mark = mark_of(rank);
  mkdir(mark.substr(0, mark.rfind('/')).c_str(), 0755);
  const int file = ::open(mark.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file >= 0) ::close(file);
}

}  // namespace maya::session
