// A rank that fails leaves a mark: its exit code and the error it printed. The launcher
// tells the user which rank failed first, and ends the others when they go on waiting for it
// (launch/failed_ranks.h).
#include "session/departure.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "session/absence.h"
#include "session/next.h"
#include "session/settings.h"

namespace maya::session {
namespace {

constinit const Next<ssize_t(int, const void*, std::size_t)> real_write("write");

// The end of what this process has printed on standard error.
constexpr std::size_t kept = 4096;
char printed[kept];
std::size_t printed_bytes = 0;  // in all

int rank = -1;
pid_t rank_process = 0;
char failure_mark[4096];

void remember(const char* text, std::size_t bytes) {
  if (bytes > kept) text += bytes - kept, printed_bytes += bytes - kept, bytes = kept;
  for (std::size_t i = 0; i < bytes; ++i) printed[printed_bytes++ % kept] = text[i];
}

// "[rank0]: ValueError: no such layer" → "ValueError: no such layer"
std::string_view without_prefix(std::string_view line) {
  if (line.substr(0, 5) == "[rank")
    if (auto end = line.find("]: "); end != std::string_view::npos) return line.substr(end + 3);
  return line;
}

// "package.SomeError: why", as Python ends a traceback.
bool is_error(std::string_view line) {
  const auto end = line.find(':');
  const auto name = line.substr(0, end);
  if (name.empty() || name.find_first_of(" \t/") != std::string_view::npos) return false;
  for (std::string_view ending : {"Error", "Exception", "Interrupt", "Exit", "Failure"})
    if (name.size() >= ending.size() && name.substr(name.size() - ending.size()) == ending)
      return true;
  return false;
}

// "ERROR:package:why", "2026-11-18 08:34:09 [ERROR] why", "error: why"
bool is_logged_error(std::string_view line) {
  return line.find("ERROR") != std::string_view::npos || line.substr(0, 6) == "error:" ||
         line.substr(0, 6) == "fatal:";
}

// The last error among the lines, else the last one that was logged, else the last line that is not
// indented (a warning ends with an indented line of source). Torch marks the error that ended a
// rank with
// "[rank0]: "; what Python prints after it while it shuts down is not the reason. A message may
// begin on the line behind the error's name.
std::string error_line() {
  std::string text;
  const std::size_t bytes = std::min(printed_bytes, kept);
  for (std::size_t i = printed_bytes - bytes; i < printed_bytes; ++i) text += printed[i % kept];
  std::string last, logged, error;
  bool marked = false, wordless = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto whole = std::string_view(text).substr(begin, end - begin);
    const auto line = without_prefix(whole);
    const bool prefixed = line.size() != whole.size();
    if (!line.empty() && line.front() != ' ') last = line;
    if (is_logged_error(line)) logged = line;
    const auto first = std::min(line.find_first_not_of(' '), line.size());
    if (wordless && first < line.size() && prefixed == marked)
      error += " " + std::string(line.substr(first)), wordless = false;
    if (is_error(line) && (prefixed || !marked)) {
      error = line, marked = prefixed;
      error.resize(error.find_last_not_of(' ') + 1);
      wordless = error.back() == ':';
    }
    begin = end + 1;
  }
  return !error.empty() ? error : !logged.empty() ? logged : last;
}

void at_exit(int code, void*) { leave_with(code); }

__attribute__((constructor)) void attend() { attend_departure(); }

}  // namespace

void attend_departure() {
  take_place();
  rank = rank_in_environment();
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (rank < 0 || run == nullptr || !owns_rank()) {
    rank = -1;
    return;
  }
  rank_process = getpid();
  std::snprintf(failure_mark, sizeof failure_mark, "%s/exchange/failed-%d", run, rank);
  unlink(failure_mark);  // of an earlier attempt: launchers may start a rank again
  on_exit(at_exit, nullptr);
}

void leave_with(int code) {
  if (rank < 0 || code == 0 || getpid() != rank_process) return;
  const std::string text = std::to_string(code) + " " + error_line() + "\n";
  std::string folder(failure_mark);
  mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0755);
  const int file = open(failure_mark, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return;
  [[maybe_unused]] const auto ignored = real_write.get()(file, text.data(), text.size());
  close(file);
}

}  // namespace maya::session

MAYA_WRAPPER ssize_t write(int file, const void* data, std::size_t bytes) {
  if (file == STDERR_FILENO && maya::session::rank >= 0)
    maya::session::remember(static_cast<const char*>(data), bytes);
  return maya::session::real_write.get()(file, data, bytes);
}
