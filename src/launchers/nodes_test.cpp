#include "launchers/nodes.h"

#include <gtest/gtest.h>

namespace maya::launchers {
namespace {

using Words = std::vector<std::string>;

int asked(const Words& command, const Environment& environment = {}) {
  auto nodes = nodes_asked(command, environment);
  return nodes ? *nodes : -1;
}

TEST(Nodes, OnlyOptionsOfALauncherAreRead) {
  EXPECT_EQ(asked({"python", "train.py", "--nnodes", "4"}), 1);
  EXPECT_EQ(asked({"torchrun", "train.py"}), 1);
  EXPECT_EQ(asked({"torchrun", "--nnodes", "4", "train.py"}), 4);
  EXPECT_EQ(asked({"/v/bin/torchrun", "--nnodes=2", "train.py"}), 2);
  EXPECT_EQ(asked({"python", "-m", "torch.distributed.run", "--nnodes=1:3", "t.py"}), 3);
  EXPECT_EQ(asked({"accelerate", "launch", "--num_machines", "2", "t.py"}), 2);
  EXPECT_EQ(asked({"torchrun", "t.py"}, {{"PET_NNODES", "5"}}), 5);
}

TEST(Nodes, OptionsOfTheScriptAreIgnored) {
  EXPECT_EQ(asked({"torchrun", "--nproc-per-node", "8", "train.py", "--nnodes=4"}), 1);
  EXPECT_EQ(asked({"torchrun", "--standalone", "train.py", "--nnodes=4"}), 1);
  EXPECT_EQ(asked({"torchrun", "-m", "train", "--nnodes=4"}), 1);
}

TEST(Nodes, InvalidNumberIsAnError) { EXPECT_EQ(asked({"torchrun", "--nnodes=many", "t.py"}), -1); }

TEST(Nodes, EveryNodeGetsItsRankAndThisMachineAsRendezvousHost) {
  auto commands =
      node_commands({"torchrun", "--nnodes=2", "--node_rank", "0", "--master_addr=node0.example",
                     "--master_port=1234", "t.py", "--node_rank", "7"},
                    2);
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[1].words,
            (Words{"torchrun", "--nnodes=2", "--node_rank", "1", "--master_addr=127.0.0.1",
                   "--master_port=1234", "t.py", "--node_rank", "7"}));
  EXPECT_EQ(commands[1].extra.at("NODE_RANK"), "1");
}

TEST(Nodes, MissingNodeRankIsAdded) {
  auto commands =
      node_commands({"torchrun", "--nnodes=2", "--rdzv-endpoint=head:29400", "t.py"}, 2);
  EXPECT_EQ(commands[1].words, (Words{"torchrun", "--node-rank", "1", "--nnodes=2",
                                      "--rdzv-endpoint=127.0.0.1:29400", "t.py"}));
}

TEST(Nodes, OneNodeDoesNotChangeTheCommand) {
  Words command{"torchrun", "--master-addr", "elsewhere", "t.py"};
  EXPECT_EQ(node_commands(command, 1)[0].words, command);
}

TEST(Nodes, ScriptGetsItsNodeFromTheEnvironment) {
  auto commands = node_commands({"bash", "start.sh"}, 3);
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[2].words, (Words{"bash", "start.sh"}));
  EXPECT_EQ(commands[2].extra.at("PET_NODE_RANK"), "2");
}

}  // namespace
}  // namespace maya::launchers
