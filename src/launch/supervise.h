// Starts the processes of a run, forwards signals to them, and waits for them like a shell.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "maya/result.h"

namespace maya::launch {

struct Process {
  std::string path;
  std::vector<std::string> words;        // argv
  std::vector<std::string> environment;  // "NAME=value"
  std::string
      output{};  // file for its output, without a standard input; empty: those of the caller
};

struct Patience {
  // When the command of one node has failed, the others get this much time to notice it themselves.
  double seconds_after_failure{20};
  // If ranks keep waiting for a failed rank and no launcher ends them, they are ended this long
  // after `rank_failed` first returned true. It is called periodically while the job runs and may
  // become false again.
  double seconds_after_failed_rank{60};
  std::function<bool()> rank_failed{};
  // When the processes of a stopped job have ended, their launchers get this much time to end.
  double seconds_after_stop{15};
  // Called about twice a second. If it returns true the commands have done everything that is
  // needed; they are killed with all their descendants.
  std::function<bool()> enough{};
  // Called when the launcher receives a signal to end.
  std::function<void()> interrupted{};
};

class StopAfter;

// The processes form one process group of their own, in the foreground of the terminal if there is
// one. SIGINT, SIGQUIT and SIGHUP are forwarded to the whole group, as a terminal does. SIGTERM is
// forwarded to the commands, which end their own workers; workers that are left when the commands
// have ended receive it then. Returns the exit code of the first command that failed, else 0. The
// code of a command that died of signal n is 128 + n.
//
// With `stop` the job may be ended early. Then all remaining descendants are ended too, also those
// in other process groups and sessions, and the code is 0.
Result<int> supervise(const std::vector<Process>& processes, const Patience& patience = {},
                      StopAfter* stop = nullptr);

// The standard output of a short helper process. Fails if its exit code is not 0.
Result<std::string> capture(const Process& process);

}  // namespace maya::launch
