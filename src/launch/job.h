// A job as a sequence of starts: the command is started once, or several times where its ranks take
// turns or where the first start tells which ranks are needed.
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

struct Job {
  std::vector<std::string> command;
  Executable executable;   // its first word
  const Starts* starts{};  // null: plainly
  Environment user;        // the environment it would get without Maya
  Installation installation;
  std::string directory;  // of the run, absolute
  std::string catalogue;
  int nodes{1}, gpus_per_node{1};
  std::vector<int> ranks;  // those that run; empty: all
  // Start with `ranks`, read from what they recorded which ranks are needed, and run these.
  bool unique{};
  int stop_after{};      // end each start when its ranks have recorded so many steps; 0: never
  double clock_scale{};  // of virtual time, see job_clock.h; 0: time is real
  int at_once{};         // of `ranks`, so many at a time; 0: all together
  // Whether what is recorded fits together. Asked where stages of a pipeline are to be worked out
  // from others; if not, all of them run. `stopped`: by `stop_after`, each rank somewhere else.
  std::function<Status(bool stopped)> fits_together;
  std::string headline;  // what is started on what, printed before each start; empty: nothing
  std::string shown;     // the run directory as a user would type it
};

// Whether the command names a launcher that can be asked for the job's ranks alone, and an error
// when it says that it starts fewer.
Result<bool> starts_ranks_alone(const Job& job);

struct Ended {
  int code{};          // the command's: the first that is not 0
  bool stopped{};      // by `stop_after`
  bool interrupted{};  // somebody asked the launcher to end
  std::optional<FailedRank> failed;
  std::vector<std::string> clock_notes;  // how virtual time went
};
Result<Ended> run_job(Job job);

}  // namespace maya::launch
