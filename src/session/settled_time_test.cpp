#include "session/settled_time.h"

#include <gtest/gtest.h>

#include <memory>

namespace maya::session {
namespace {

TEST(SettledTime, CountsTheLeastOfTheSamePlace) {
  auto times = std::make_unique<clock::HostTimes>();
  SettledTime time;
  for (std::uint64_t step = 0; step < 4; ++step)
    for (std::uint64_t call = 0; call < 10; ++call) {
      const std::int64_t noise = (step * 7 + call * 3) % 5 * 100;
      const std::int64_t least = 1000 + static_cast<std::int64_t>(call) * 10;
      const std::int64_t settled = time.settle(*times, call, step == 1 ? least : least + noise);
      if (step >= 2) {
        EXPECT_EQ(settled, least) << call;
      }
      EXPECT_LE(settled, least + noise);
    }
}

TEST(SettledTime, ProcessesOfAJobKnowEachOthersTimes) {
  auto times = std::make_unique<clock::HostTimes>();
  SettledTime one, other;
  for (std::uint64_t call = 0; call < 20; ++call) one.settle(*times, call, 1000);
  for (std::uint64_t call = 0; call < 20; ++call) {
    const std::int64_t settled = other.settle(*times, call, 1500);
    if (call >= 7) {
      EXPECT_EQ(settled, 1000) << call;
    }
  }
}

TEST(SettledTime, OfManyTimesTheLowerSixteenthCounts) {
  auto times = std::make_unique<clock::HostTimes>();
  SettledTime time;
  std::int64_t settled = 0;
  for (int i = 0; i < 128; ++i) settled = time.settle(*times, 1, 1000 + i % 64);
  EXPECT_EQ(settled, 1003);
}

TEST(SettledTime, LongStretchesAreTheProgramsOwn) {
  auto times = std::make_unique<clock::HostTimes>();
  SettledTime time;
  for (int i = 0; i < 20; ++i) time.settle(*times, 1, 1'000'000);
  EXPECT_EQ(time.settle(*times, 1, 6'000'000), 6'000'000);
  for (int i = 0; i < 80; ++i) time.settle(*times, 1, 8'000'000);
  EXPECT_EQ(time.settle(*times, 1, 9'000'000), 8'000'000);
}

TEST(SettledTime, WorkBeforeAndAfterAWaitIsSettledApart) {
  auto times = std::make_unique<clock::HostTimes>();
  SettledTime time;
  // The thread waits in every second round: what it takes without a wait is not what it takes after
  // one.
  for (int i = 0; i < 40; ++i) {
    if (i % 2 == 0) {
      EXPECT_EQ(time.settle_before_sleep(*times, 400), 400);
    }
    EXPECT_EQ(time.settle(*times, 1, i % 2 == 0 ? 300 : 700), i % 2 == 0 ? 300 : 700) << i;
  }
  EXPECT_EQ(time.settle_before_sleep(*times, 900), 400);
  EXPECT_EQ(time.settle(*times, 1, 800), 300);
}

TEST(SettledTime, OtherSurroundingsAreAnotherPlace) {
  auto times = std::make_unique<clock::HostTimes>();
  SettledTime time;
  for (int i = 0; i < 20; ++i) time.settle(*times, 1, 1000);
  time.settle(*times, 2, 1000);
  EXPECT_EQ(time.settle(*times, 1, 3000), 3000);
}

}  // namespace
}  // namespace maya::session
