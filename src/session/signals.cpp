// A process of the command that ends another one means it: engines and launchers end their workers
// with SIGTERM and, a few seconds later, SIGKILL. With virtual time those seconds may pass before a
// worker has closed its recording. Whom they ended stands in ended.txt of the run directory, so
// that the prediction does not take such a recording for one of a process that crashed.
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "session/next.h"
#include "session/notes.h"

namespace {

constinit const maya::session::Next<int(pid_t, int)> real_kill("kill");

}  // namespace

MAYA_WRAPPER int kill(pid_t process, int signal) noexcept {
  const int result = real_kill.get()(process, signal);
  // After the call: only somebody who was there has been ended.
  if (result == 0 && (signal == SIGTERM || signal == SIGKILL) && process > 0 &&
      process != getpid()) {
    char line[16];
    std::snprintf(line, sizeof line, "%d", process);
    maya::session::append_to_run("ended.txt", line);
  }
  return result;
}
