#include "network/measured.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "network/open.h"

namespace maya::network {
namespace {

TEST(Measured, CurvesOfAGpu) {
  auto m = Measured::parse(
      "# where from\n"
      "a,all_reduce,switch,8,1024,10 20 40\n"
      "a,all_reduce,switch,2,1024,5\n"
      "a,all_gather,any,4,512,3 3\n"
      "b,all_reduce,any,8,1024,1 1 1\n",
      "a", "file");
  ASSERT_TRUE(m);
  const auto& curves = m->curves(CollectiveKind::all_reduce, true);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].ranks, 2);
  EXPECT_DOUBLE_EQ(curves[1].at(2048), 20);
  EXPECT_NEAR(curves[1].at(2048 * std::sqrt(2.0)), 20 * std::sqrt(2.0), 1e-9);
  EXPECT_DOUBLE_EQ(curves[1].at(1), 10);
  EXPECT_DOUBLE_EQ(curves[1].at(1e9), 40);
  EXPECT_TRUE(m->curves(CollectiveKind::all_reduce, false).empty());
  EXPECT_EQ(m->curves(CollectiveKind::reduce_scatter, false).size(), 1u);
}

TEST(Measured, AllReducesOfEngines) {
  auto m = Measured::parse(
      "a,all_reduce,switch,2,1024,50 50\n"
      "a,all_reduce,vllm,2,1024,4 8\n"
      "a,all_reduce,vllm,8,1024,16 32\n",
      "a", "file");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->curves(CollectiveKind::all_reduce, true).size(), 1u);
  EXPECT_DOUBLE_EQ(m->engine_us(CollectiveLibrary::vllm, 2, 2048), 8);
  EXPECT_NEAR(m->engine_us(CollectiveLibrary::vllm, 4, 1024), 8, 1);  // between 2 and 8 ranks
  EXPECT_EQ(m->engine_us(CollectiveLibrary::vllm, 16, 1024), 0);      // nobody measured so many
  EXPECT_EQ(m->engine_us(CollectiveLibrary::sglang, 2, 1024), 0);
}

TEST(Measured, ErrorNamesTheBadLine) {
  for (const char* line :
       {"a,all_reduce,switch,8,1024", "a,all_redux,any,8,1024,1", "a,all_reduce,up,8,1024,1",
        "a,all_reduce,any,1,1024,1", "a,all_reduce,any,8,0,1", "a,all_reduce,any,8,1024,1 0 3",
        "a,all_reduce,any,8,1024,1 two 3", "a,all_gather,vllm,8,1024,1"}) {
    auto m = Measured::parse(std::string("#\n") + line + "\n", "a", "file");
    ASSERT_FALSE(m) << line;
    EXPECT_NE(m.error().message.find("file:2: expected gpu,collective"), std::string::npos);
  }
  EXPECT_TRUE(Measured::load("/nonexistent/measured.csv", "a"));
}

// What was measured comes out, for the numbers of ranks that were and near others.
TEST(Measured, ShippedCurvesAreMet) {
  auto catalog = *catalog::Catalog::load(MAYA_SOURCE_DIR "/catalog");
  auto cluster = *catalog.cluster("dgx-h100");
  auto curves = Measured::load(MAYA_SOURCE_DIR "/catalog/network/measured.csv", "h100-sxm");
  ASSERT_TRUE(curves);
  const auto& all_reduce = curves->curves(CollectiveKind::all_reduce, true);
  ASSERT_EQ(all_reduce.size(), 3u);
  auto network = *open_network(cluster);
  auto us = [&](int ranks, double bytes) {
    std::vector<std::int32_t> group(static_cast<std::size_t>(ranks));
    std::iota(group.begin(), group.end(), 0);
    return network
               ->collective({.kind = CollectiveKind::all_reduce,
                             .bytes = static_cast<std::int64_t>(bytes),
                             .dtype = DType::bf16},
                            group)
               .ns /
           1e3;
  };
  for (const MeasuredCurve& curve : all_reduce)
    for (double bytes : {4096.0, 1048576.0, 67108864.0})
      EXPECT_NEAR(us(curve.ranks, bytes) / curve.at(bytes), 1, 0.05) << curve.ranks << " " << bytes;
  EXPECT_GT(us(6, 1 << 20), us(4, 1 << 20));
  EXPECT_LT(us(6, 1 << 20), us(8, 1 << 20));
  // A user who chooses the algorithm gets the formula's.
  auto ring = *open_network(cluster, {{"NCCL_ALGO", "Ring"}});
  std::vector<std::int32_t> eight{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(
      ring->collective({.kind = CollectiveKind::all_reduce, .bytes = 1 << 28}, eight).algorithm,
      "ring");
}

}  // namespace
}  // namespace maya::network
