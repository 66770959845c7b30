// Starts a command for one node of several once for each node of the emulated cluster.
//
// On a real cluster a user starts `torchrun --nnodes 4 --node-rank K …` on every node, with a
// different K. Here one machine runs all nodes: the command runs four times in parallel, each with
// its own node rank and with this machine as rendezvous host.
#pragma once

#include <string>
#include <vector>

#include "launchers/launcher.h"
#include "maya/result.h"

namespace maya::launchers {

struct NodeCommand {
  std::vector<std::string> words;
  Environment extra;  // NODE_RANK and similar variables, for scripts that read them
};

// The number of nodes that the command is for: --nnodes of torchrun (MAX of MIN:MAX; PET_NNODES) or
// --num_machines of accelerate. 1 if it is not given.
Result<int> nodes_asked(const std::vector<std::string>& command, const Environment& environment);

// One command per node. With `nodes` = 1 the command is not changed.
std::vector<NodeCommand> node_commands(const std::vector<std::string>& command, int nodes);

}  // namespace maya::launchers
