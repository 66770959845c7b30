// Starts the processes of a run, passes signals on to them, and waits for them as a shell would.
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
};

struct Patience {
  // When one node's command has failed, the others get this long to notice by themselves.
  double seconds_after_failure{20};
  // Ranks that go on waiting for one that has failed, where no launcher ends them: this long after
  // `rank_failed` said so. It is asked while the job runs and may change its mind.
  double seconds_after_failed_rank{60};
  std::function<bool()> rank_failed{};
  // When the processes of a stopped job have left, their launchers get this long to end.
  double seconds_after_stop{15};
  // Asked about twice a second: the commands have done all that is wanted of them, and are ended
  // without further ado, with all that they started.
  std::function<bool()> enough{};
  // Told when somebody asks the launcher to end.
  std::function<void()> interrupted{};
};

class StopAfter;

// The processes form one process group of their own, in the foreground of the terminal if there is
// one. SIGINT, SIGQUIT and SIGHUP sent to the launcher go to the whole group, as a terminal does;
// SIGTERM goes to the commands, which know what to do with their workers; those that are left when
// the commands have ended get it then. Gives the exit code of the first command that failed, else
// 0; 128 + n for one that died of signal n.
//
// With `stop` the job may be ended early. Then whatever it started and left behind is ended too,
// in other process groups and sessions as well, and the code is 0.
Result<int> supervise(const std::vector<Process>& processes, const Patience& patience = {},
                      StopAfter* stop = nullptr);

// Output of a short helper process (stdout only; stderr is dropped); fails when it does not exit
// with 0.
Result<std::string> capture(const Process& process);

}  // namespace maya::launch
