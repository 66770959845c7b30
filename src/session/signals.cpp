// A process of the command that ends another one means it: engines and launchers end their workers
// with SIGTERM and, a few seconds later, SIGKILL. With virtual time those seconds may pass before a
// worker has closed its recording. Whom they ended stands in ended.txt of the run directory, so
// that the prediction does not take such a recording for one of a process that crashed.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "session/next.h"

namespace maya::session {
namespace {

constinit const Next<int(pid_t, int)> real_kill("kill");

void note_ended(pid_t process) {
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (run == nullptr || *run == '\0') return;
  char path[4096], line[24];
  if (std::snprintf(path, sizeof path, "%s/ended.txt", run) >= static_cast<int>(sizeof path))
    return;
  const int length = std::snprintf(line, sizeof line, "%d\n", process);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  [[maybe_unused]] const auto ignored = write(file, line, static_cast<std::size_t>(length));
  close(file);
}

}  // namespace
}  // namespace maya::session

MAYA_WRAPPER int kill(pid_t process, int signal) noexcept {
  using namespace maya::session;
  const int result = real_kill.get()(process, signal);
  // After the call: only somebody who was there has been ended.
  if (result == 0 && (signal == SIGTERM || signal == SIGKILL) && process > 0 && process != getpid())
    note_ended(process);
  return result;
}
