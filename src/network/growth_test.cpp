// On every cluster of the catalogue a larger collective must take longer, and one of twice the size
// not much more than twice as long, regardless of the algorithm that NCCL chooses.
#include <gtest/gtest.h>

#include <numeric>

#include "maya/catalog.h"
#include "network/curve.h"
#include "network/open.h"

namespace maya::network {
namespace {

const catalog::Catalog& shipped() {
  static const catalog::Catalog catalog = *catalog::Catalog::load(MAYA_SOURCE_DIR "/catalog");
  return catalog;
}

void grows(const catalog::Cluster& c, const std::string& label) {
  auto network = open_network(c);
  ASSERT_TRUE(network) << label;
  std::vector<std::int32_t> all(static_cast<std::size_t>(c.world_size()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::int32_t> pair{0, 1};
  for (int k = 0; k < static_cast<int>(CollectiveKind::barrier); ++k)
    for (const auto& group : {all, pair})
      for (DType type : {DType::bf16, DType::i8}) {
        if (type == DType::i8 && k != static_cast<int>(CollectiveKind::all_reduce)) continue;
        auto ns = [&](std::int64_t bytes) {
          return (*network)
              ->collective({.kind = static_cast<CollectiveKind>(k), .bytes = bytes, .dtype = type},
                           group)
              .ns;
        };
        double before = 0;
        for (std::int64_t bytes = 4; bytes <= std::int64_t{1} << 36; bytes += bytes / 4) {
          const double now = ns(bytes);
          ASSERT_GT(now, 0);
          ASSERT_GE(now, before) << label << ", collective " << k << ", " << bytes << " bytes";
          before = now;
          // At most twice the time for twice the data, plus the cost of a worse choice.
          ASSERT_LE(ns(2 * bytes), 2.4 * now)
              << label << ", collective " << k << ", twice " << bytes << " bytes";
        }
      }
}

TEST(Growth, EveryClusterOfTheCatalogue) {
  std::size_t checked = 0;
  for (const catalog::Cluster& one : shipped().clusters())
    for (int nodes : {1, 2, 16})
      for (const char* cards : {"", "2"}) {
        std::vector<std::pair<std::string, std::string>> overrides;
        if (*cards) overrides.emplace_back("network.nics_per_node", cards);
        if (nodes == 1 && *cards) continue;
        auto c = shipped().cluster(one.name + ":" + std::to_string(nodes), overrides);
        if (!c || c->world_size() < 2) continue;  // the machine has no network
        ++checked;
        grows(*c, c->name + ":" + std::to_string(nodes) + " with cards " + cards);
        if (testing::Test::HasFatalFailure()) return;
      }
  EXPECT_GT(checked, 2 * shipped().clusters().size());
}

TEST(Curve, NeverDecreasesAndIsExactAtTabulatedSizes) {
  // The function drops at 1000 bytes. The curve stays at the higher time until it is reached again.
  const Curve curve([](double bytes) { return bytes < 1000 ? 10 + bytes / 10 : bytes / 20; });
  double before = 0;
  for (double bytes = 1; bytes < 1e6; bytes *= 1.03) {
    EXPECT_GE(curve(bytes), before);
    before = curve(bytes);
  }
  EXPECT_DOUBLE_EQ(curve(512), 10 + 51.2);
  EXPECT_DOUBLE_EQ(curve(65536), 65536.0 / 20);
  EXPECT_NEAR(curve(1e14) / curve(5e13), 2, 1e-6);  // beyond the table
}

}  // namespace
}  // namespace maya::network
