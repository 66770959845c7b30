#include "estimate/routing.h"

#include <gtest/gtest.h>

namespace maya::estimate {
namespace {

TEST(Routing, EvenlyDealtTokensReachEveryExpertOnceThereAreEnough) {
  EXPECT_EQ(route(16, 8, 128, 1, 0).hit, 128);
  EXPECT_EQ(route(4, 8, 128, 1, 0).hit, 32);
  EXPECT_EQ(route(4, 8, 128, 8, 0).hit, 4);
  const Routing r = route(1024, 8, 128, 1, 0);
  EXPECT_EQ(r.rows, 8192);
  EXPECT_EQ(r.most, 64);
  EXPECT_EQ(r.tiles[0], 512);
  EXPECT_EQ(r.tiles[2], 128);
}

TEST(Routing, SkewLeavesExpertsEmptyAndLoadsTheBusiestRank) {
  for (double skew : {1.0, 1.01, 1.2, 2.0})
    for (double tokens : {1.0, 8.0, 300.0, 16384.0})
      for (double ranks : {1.0, 4.0, 128.0}) {
        const Routing even = route(tokens, 8, 128, ranks, 0),
                      r = route(tokens, 8, 128, ranks, skew);
        EXPECT_LE(r.hit, 128 / ranks + 1e-9);
        EXPECT_GE(r.hit, 1);
        EXPECT_GE(r.rows, 0.99 * tokens * 8 / ranks);
        EXPECT_LE(r.rows, tokens * 8);
        EXPECT_LE(r.most, tokens);
        if (ranks == 1) EXPECT_LE(r.hit, even.hit + 1e-9) << skew << ' ' << tokens;
        for (std::size_t i = 0; i < r.tiles.size(); ++i) EXPECT_GE(r.tiles[i], 1);
      }
}

// Two tokens with eight distinct experts of 128 each: the second one hits half an old one.
TEST(Routing, EqualChancesLeaveSomeExpertsOfFewTokensEmpty) {
  EXPECT_NEAR(route(1, 8, 128, 1, -1).hit, 8, 1e-9);
  EXPECT_NEAR(route(2, 8, 128, 1, -1).hit, 15.5, 1e-9);
  EXPECT_NEAR(route(16, 8, 128, 1, -1).hit, 82.4, 0.1);
  EXPECT_NEAR(route(16, 8, 128, 4, -1).hit, 82.4 / 4, 0.1);
  for (double tokens : {1.0, 8.0, 300.0, 16384.0}) {
    const Routing even = route(tokens, 8, 128, 1, 0), r = route(tokens, 8, 128, 1, -1);
    EXPECT_LE(r.hit, even.hit + 1e-9);
    EXPECT_NEAR(r.rows, even.rows, 1e-6);
    EXPECT_GE(r.most, even.most);
    EXPECT_LE(r.most, tokens);
    for (double pieces : r.tiles) EXPECT_GE(pieces, r.hit - 1e-9);
  }
}

}  // namespace
}  // namespace maya::estimate
