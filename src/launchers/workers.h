// Makes a launcher start only some ranks of a job.
//
// Most ranks of a large job need not exist as processes. The command line of a known launcher is
// changed to one node with as many processes as ranks run. Each process then gets its rank in the
// whole job before its program begins (session/absence.h). So a job of thousands of ranks needs
// neither their processes nor a rendezvous with nodes that do not exist. An unknown launcher starts
// all ranks, and those that are not needed wait.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launchers/launcher.h"
#include "maya/result.h"

namespace maya::launchers {

// "0-2,8" as {0, 1, 2, 8}, "0-24/8" as {0, 8, 16, 24}; "all" as {}. Ascending.
Result<std::vector<int>> listed_ranks(const std::string& text);

struct Workers {
  std::vector<std::string> words;
  int world{}, per_node{};
  Environment extra;  // variables that the launcher reads in place of options
};

// nullopt if the launcher is unknown or its number of processes is not given. `gpus` is the value
// of
// `--nproc-per-node gpu`. A rank outside the job is an error.
Result<std::optional<Workers>> only_workers(const std::vector<std::string>& command,
                                            const Environment& environment, int nodes, int gpus,
                                            const std::vector<int>& ranks);

}  // namespace maya::launchers
