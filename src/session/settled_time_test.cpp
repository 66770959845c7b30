#include "session/settled_time.h"

#include <gtest/gtest.h>

namespace maya::session {
namespace {

TEST(SettledTime, CountsTheLeastOfTheSamePlace) {
  SettledTime time;
  for (std::uint64_t step = 0; step < 4; ++step)
    for (std::uint64_t call = 0; call < 10; ++call) {
      const std::int64_t noise = (step * 7 + call * 3) % 5 * 100;
      const std::int64_t least = 1000 + static_cast<std::int64_t>(call) * 10;
      const std::int64_t settled = time.settle(call, step == 1 ? least : least + noise);
      if (step >= 2) {
        EXPECT_EQ(settled, least) << call;
      }
      EXPECT_LE(settled, least + noise);
    }
}

TEST(SettledTime, LongStretchesAreTheProgramsOwn) {
  SettledTime time;
  for (int i = 0; i < 20; ++i) time.settle(1, 1'000'000);
  EXPECT_EQ(time.settle(1, 6'000'000), 6'000'000);
}

TEST(SettledTime, OtherSurroundingsAreAnotherPlace) {
  SettledTime time;
  for (int i = 0; i < 20; ++i) time.settle(1, 1000);
  time.settle(2, 1000);
  EXPECT_EQ(time.settle(1, 3000), 3000);
}

}  // namespace
}  // namespace maya::session
