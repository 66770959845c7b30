// Runs a job. The command is started once, or several times: if ranks run in turns to save memory,
// or if the first start determines which ranks are needed (--ranks unique).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/environment.h"
#include "launch/executable.h"
#include "launch/failed_ranks.h"
#include "launch/installation.h"
#include "launch/starts.h"
#include "maya/result.h"

namespace maya::launch {

// How long a command has run.
struct Moment {
  double real_seconds{};
  double virtual_seconds{-1};  // negative: the clock is this machine's
};

struct Job {
  std::vector<std::string> command;
  Executable executable;   // its first word
  const Starts* starts{};  // null: programs are started with exec, not forked
  Environment user;        // the environment of the user
  Installation installation;
  std::string directory;  // of the run, absolute
  std::string catalogue;
  int nodes{1}, gpus_per_node{1};
  std::vector<int> ranks;  // the ranks that run; empty: all
  // Run `ranks` first, derive from their recordings which ranks are needed, and run these.
  bool unique{};
  // With `unique`: the ranks that an earlier run of the same layout needed. They start together,
  // without the first rank alone in front; if this run needs others, it begins again with that.
  std::vector<int> expected;
  // With `unique`, run one more rank to check that ranks which are taken to do identical work do.
  bool probe{};
  int stop_after{};      // end each start when its ranks have recorded this many steps; 0: never
  double clock_scale{};  // of virtual time, see job_clock.h; 0: real time
  int at_once{};         // how many of `ranks` run at the same time; 0: all
  // Checks that the recordings form a consistent job. Called if pipeline stages are to be derived
  // from others; if it fails, all stages run. `stopped`: ended by `stop_after`, so that the ranks
  // ended at different places.
  std::function<Status(bool stopped)> fits_together;
  // A line for the foot of the terminal (status_line.h), about once a second. Null: none.
  std::function<std::string(const Moment&)> status;
  std::string headline;  // printed before each start; empty: nothing is printed
  std::string shown;     // the run directory as a user would type it
};

// Whether the command uses a launcher that can start only `ranks`. An error if the command starts
// fewer ranks than that.
Result<bool> starts_ranks_alone(const Job& job);

struct Ended {
  int code{};          // exit code of the command: the first that is not 0
  bool stopped{};      // ended by `stop_after`
  bool interrupted{};  // the launcher received a signal to end
  std::optional<FailedRank> failed;
  std::vector<std::string> notes;  // for the user: about virtual time, about ranks that differ
};
Result<Ended> run_job(Job job);

}  // namespace maya::launch
