#include "launchers/workers.h"

#include <gtest/gtest.h>

namespace maya::launchers {
namespace {

using Words = std::vector<std::string>;
using Ranks = std::vector<int>;

TEST(Workers, ParsesLists) {
  EXPECT_EQ(*listed_ranks("all"), Ranks());
  EXPECT_EQ(*listed_ranks("8-9,0-1,1"), (Ranks{0, 1, 8, 9}));
  EXPECT_EQ(*listed_ranks("0-24/8,31"), (Ranks{0, 8, 16, 24, 31}));
  for (const char* wrong :
       {"", "some", "3-1", "1,", "-1", "0-", "1;2", "99999999999", "0-8/0", "0-8/", "8/2"})
    EXPECT_FALSE(listed_ranks(wrong)) << wrong;
}

TEST(Workers, CommandStartsOneProcessPerSelectedRank) {
  auto workers = only_workers({"torchrun", "--nnodes=128", "--nproc-per-node", "8", "--node_rank",
                               "3", "--rdzv-endpoint", "head:29400", "t.py", "--nnodes", "2"},
                              {}, 128, 8, {0, 8, 1016});
  ASSERT_TRUE(workers && *workers);
  EXPECT_EQ((*workers)->words,
            (Words{"torchrun", "--nnodes=1", "--nproc-per-node", "3", "--node_rank", "0",
                   "--rdzv-endpoint", "127.0.0.1:29400", "t.py", "--nnodes", "2"}));
  EXPECT_EQ((*workers)->world, 1024);
  EXPECT_EQ((*workers)->per_node, 8);
}

TEST(Workers, OverridesTheEnvironment) {
  auto workers = only_workers({"torchrun", "t.py"},
                              {{"PET_NNODES", "2"}, {"PET_NPROC_PER_NODE", "gpu"}}, 2, 4, {7});
  ASSERT_TRUE(workers && *workers);
  EXPECT_EQ((*workers)->words,
            (Words{"torchrun", "--nnodes", "1", "--nproc-per-node", "1", "t.py"}));
  EXPECT_EQ((*workers)->world, 8);
}

TEST(Workers, AccelerateCountsProcessesOfAllMachines) {
  auto workers =
      only_workers({"accelerate", "launch", "--num_machines", "4", "--num_processes=32", "t.py"},
                   {}, 4, 8, {0, 1});
  ASSERT_TRUE(workers && *workers);
  EXPECT_EQ((*workers)->words,
            (Words{"accelerate", "launch", "--num_machines", "1", "--num_processes=2", "t.py"}));
  EXPECT_EQ((*workers)->world, 32);
}

TEST(Workers, RankOutsideTheJobIsAnError) {
  auto workers = only_workers({"torchrun", "--nproc-per-node", "4", "t.py"}, {}, 1, 8, {0, 4});
  ASSERT_FALSE(workers);
  EXPECT_EQ(workers.error().message, "there is no rank 4: the command starts 4 (1 × 4)");
}

TEST(Workers, UnknownLaunchersAreNotChanged) {
  for (const Words& command : {Words{"bash", "start.sh"}, Words{"mpirun", "-np", "8", "t"},
                               Words{"accelerate", "launch", "t.py"},
                               Words{"python", "-m", "torch.distributed.launch", "t.py"}}) {
    auto workers = only_workers(command, {}, 1, 8, {0});
    ASSERT_TRUE(workers);
    EXPECT_FALSE(*workers) << command[0];
  }
}

}  // namespace
}  // namespace maya::launchers
