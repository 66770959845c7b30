// The ranks of a job that run when not all do, and how a launcher is made to start only those.
//
// Most ranks of a large job need not exist as processes. A launcher we understand is asked for one
// node with as many processes as ranks run; each process then learns, before its program begins,
// which rank of the whole job it is (session/absence.h). So a job of thousands needs neither their
// processes nor a rendezvous with nodes that are not there. Under any other launcher all ranks are
// started, and those that do not run wait.
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
  Environment extra;  // what the launcher reads instead of options
};

// nullopt: no launcher we understand, or it does not say how many processes it starts. `gpus` is
// what torchrun's "gpu" means. A rank that the job does not have is an error.
Result<std::optional<Workers>> only_workers(const std::vector<std::string>& command,
                                            const Environment& environment, int nodes, int gpus,
                                            const std::vector<int>& ranks);

}  // namespace maya::launchers
