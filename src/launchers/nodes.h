// A command for one node of several, started once for each node of the emulated cluster.
//
// On a real cluster a user starts `torchrun --nnodes 4 --node-rank K …` on every node, with another
// K. Here one machine plays all of them: the same command runs four times side by side, with its
// node rank substituted and its rendezvous host replaced by this machine, as a user would on each
// node.
#pragma once

#include <string>
#include <vector>

#include "launchers/launcher.h"
#include "maya/result.h"

namespace maya::launchers {

struct NodeCommand {
  std::vector<std::string> words;
  Environment extra;  // NODE_RANK and friends, for scripts that read them
};

// How many nodes the command asks for: torchrun's --nnodes (MAX of MIN:MAX; PET_NNODES),
// accelerate's
// --num_machines. 1 when it says nothing.
Result<int> nodes_asked(const std::vector<std::string>& command, const Environment& environment);

// One command per node. `nodes` = 1 gives the command back as it is.
std::vector<NodeCommand> node_commands(const std::vector<std::string>& command, int nodes);

}  // namespace maya::launchers
