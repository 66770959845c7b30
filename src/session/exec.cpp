#include "session/exec.h"

#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "clock/system_call.h"
#include "session/next.h"
#include "session/notes.h"
#include "session/partial_start.h"
#include "session/start.h"
#include "session/virtual_time.h"

namespace maya::session {
namespace {

bool reaches(char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment)
    if (std::strncmp(*environment, "LD_PRELOAD=", 11) == 0)
      return std::strstr(*environment, "libmaya_device") != nullptr;
  return false;
}

// Programs that start others with an environment of their own making (`env -i`, subprocess with
// env=…) take them out of the emulation's reach, and then nothing is recorded without anyone having
// said why. This handler changes nothing; it notices.
void notice_unreached(Start& start) {
  if (start.program == nullptr || reaches(start.environment)) return;
  char line[1024];
  std::snprintf(line, sizeof line, "%s was started without LD_PRELOAD in its environment",
                start.program);
  note_unreached(line);
}

// In this order.
constexpr StartHandler* handlers[] = {notice_unreached, start_some_ranks, start_by_fork};

// Between vfork and exec nobody has told the job's clock of the new process.
void take_time_along() { child_starts(static_cast<int>(clock::system_call(SYS_getpid))); }

int spawned(int result, pid_t made, pid_t* process) {
  if (result == 0) child_starts(made);
  if (result == 0 && process != nullptr) *process = made;
  return result;
}

Start handled(const char* program, char* const* words, char* const* environment) {
  Start start{program, words, environment};
  for (StartHandler* handle : handlers) handle(start);
  return start;
}

using ExecWith = int(const char*, char* const*, char* const*);
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  char* const*, char* const*);
constinit const Next<ExecWith> real_execve("execve"), real_execvpe("execvpe");
constinit const Next<pid_t()> real_fork("fork");
constinit const Next<Spawn> real_spawn("posix_spawn"), real_spawnp("posix_spawnp");

// Looked up when the library is loaded: between fork and exec it would be too late.
[[maybe_unused]] const bool looked_up = [] {
  for (const auto* exec : {&real_execve, &real_execvpe}) exec->get();
  for (const auto* spawn : {&real_spawn, &real_spawnp}) spawn->get();
  return true;
}();

}  // namespace
}  // namespace maya::session

using maya::session::handled;

MAYA_WRAPPER pid_t fork() noexcept {
  const pid_t made = maya::session::real_fork.get()();
  if (made > 0) maya::session::child_starts(made);
  return made;
}

MAYA_WRAPPER int execve(const char* path, char* const* words, char* const* environment) noexcept {
  maya::session::take_time_along();
  const auto start = handled(path, words, environment);
  return maya::session::real_execve.get()(start.program, start.words, start.environment);
}

MAYA_WRAPPER int execv(const char* path, char* const* words) noexcept {
  maya::session::take_time_along();
  const auto start = handled(path, words, environ);
  return maya::session::real_execve.get()(start.program, start.words, start.environment);
}

MAYA_WRAPPER int execvp(const char* name, char* const* words) noexcept {
  maya::session::take_time_along();
  const auto start = handled(name, words, environ);
  return maya::session::real_execvpe.get()(start.program, start.words, start.environment);
}

MAYA_WRAPPER int execvpe(const char* name, char* const* words, char* const* environment) noexcept {
  maya::session::take_time_along();
  const auto start = handled(name, words, environment);
  return maya::session::real_execvpe.get()(start.program, start.words, start.environment);
}

MAYA_WRAPPER int posix_spawn(pid_t* process, const char* path,
                             const posix_spawn_file_actions_t* actions,
                             const posix_spawnattr_t* attributes, char* const* words,
                             char* const* environment) {
  const auto start = handled(path, words, environment);
  pid_t made = 0;
  const int result = maya::session::real_spawn.get()(&made, start.program, actions, attributes,
                                                     start.words, start.environment);
  return maya::session::spawned(result, made, process);
}

MAYA_WRAPPER int posix_spawnp(pid_t* process, const char* name,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const* words,
                              char* const* environment) {
  const auto start = handled(name, words, environment);
  pid_t made = 0;
  const int result = maya::session::real_spawnp.get()(&made, start.program, actions, attributes,
                                                      start.words, start.environment);
  return maya::session::spawned(result, made, process);
}
