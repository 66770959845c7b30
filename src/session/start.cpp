#include "session/start.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "session/absence.h"
#include "session/departure.h"
#include "session/host_clock.h"
#include "session/membership.h"
#include "session/next.h"
#include "session/notes.h"
#include "session/python_hook.h"
#include "session/state.h"
#include "session/timed_wait.h"

namespace maya::session {
namespace {

// As it was when the process started. Empty: none.
char starter[4000];
[[maybe_unused]] const bool starter_found = [] {
  const char* libraries = std::getenv("MAYA_LIB_DIR");
  if (libraries == nullptr || std::getenv("MAYA_START_DIR") == nullptr) return false;
  const int length = std::snprintf(starter, sizeof starter, "%s/start/maya-start", libraries);
  if (length >= static_cast<int>(sizeof starter) || access(starter, X_OK) != 0) *starter = '\0';
  return true;
}();

bool has(char* const* environment, const char* start) {
  for (; environment != nullptr && *environment != nullptr; ++environment)
    if (std::strncmp(*environment, start, std::strlen(start)) == 0) return true;
  return false;
}

bool is_python(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr && std::strncmp(slash + 1, "python", 6) == 0;
}

}  // namespace

// maya-start finds the interpreter in words[0], so the two must be the same.
void start_by_fork(Start& start) {
  if (*starter != '\0' && start.program != nullptr && start.words != nullptr &&
      start.words[0] != nullptr && std::strcmp(start.program, start.words[0]) == 0 &&
      is_python(start.program) && has(start.environment, "MAYA_START_DIR=") &&
      has(start.environment, "LD_PRELOAD="))
    start.program = starter;
}

}  // namespace maya::session

// For template.py: whether this process may still be forked into a program, …
MAYA_WRAPPER int maya_device_used() { return maya::session::device_used() ? 1 : 0; }

// … and which variables decided what it has imported so far: names asked for by getenv, one a line.
namespace {
std::atomic<bool> watching{false};
std::atomic<std::size_t> names_end{0};
char names[1 << 18];  // only templates ever touch these pages
constinit const maya::session::Next<char*(const char*)> real_getenv("getenv");
}  // namespace

MAYA_WRAPPER void maya_watch_variables(bool on) { watching = on; }

bool maya::session::is_template() { return watching.load(std::memory_order_relaxed); }

MAYA_WRAPPER const char* maya_variables_read() { return names; }

MAYA_WRAPPER char* getenv(const char* name) noexcept {
  if (watching.load(std::memory_order_relaxed)) {
    const std::size_t length = std::strlen(name);
    const std::size_t at = names_end.fetch_add(length + 1);
    if (at + length + 1 < sizeof names) {
      std::memcpy(names + at, name, length);
      names[at + length] = '\n';
    }
  }
  return real_getenv.get()(name);
}

// It has become a template: it is not of the run that started it any more.
MAYA_WRAPPER void maya_leave_run() { maya::session::leave_run(); }

// … and in the child, what has been read from the environment is read again.
MAYA_WRAPPER void maya_start_again() {
  using namespace maya::session;
  maya_watch_variables(false);
  read_notes_directory();
  join_run();
  host_clock() = HostClock();
  attend_job();
  attend_departure();
  prepare_python_again();
  enter_virtual_time();
}
