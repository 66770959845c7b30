#include "session/progress.h"

#include <gtest/gtest.h>

#include <thread>

namespace maya::session {
namespace {

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() { compute.id = 1, network.id = 2; }
  Progress progress;
  Stream compute, network;
  Event event, later;
};

TEST_F(ProgressTest, WorkIsPendingUntilTheHostWaitedForIt) {
  progress.recorded(event, network);
  EXPECT_FALSE(progress.done(event));
  progress.reached(compute);  // another stream
  EXPECT_FALSE(progress.done(event));
  progress.reached(network);
  EXPECT_TRUE(progress.done(event));
}

TEST_F(ProgressTest, WaitingForAStreamCoversWhatItWaitedFor) {
  progress.recorded(event, network);
  progress.waits(compute, event);
  progress.recorded(later, network);
  progress.reached(compute);
  EXPECT_TRUE(progress.done(event));
  EXPECT_FALSE(progress.done(later));
}

TEST_F(ProgressTest, ALaterEventCoversEarlierOnesOfItsStream) {
  progress.recorded(event, network);
  progress.recorded(later, network);
  progress.reached(event);
  EXPECT_FALSE(progress.done(later));
  progress.reached(later);
  EXPECT_TRUE(progress.done(later));
  progress.recorded(event, compute);  // recorded again: pending again
  EXPECT_FALSE(progress.done(event));
  progress.reached_all();
  EXPECT_TRUE(progress.done(event));
}

std::int64_t hand = 1'000'000'000;  // of the clock below
std::int64_t watch() { return hand; }

TEST_F(ProgressTest, AWatchdogThatAsksOnceAndLateFindsNothingPending) {
  Progress timed(watch);
  auto found_by_watchdog = [&](Event& of) {
    bool done = false;
    std::thread([&] { done = timed.done(of); }).join();
    return done;
  };
  timed.recorded(event, network);
  EXPECT_FALSE(found_by_watchdog(event));
  hand += 600'000'000'000;  // the program compiles something
  EXPECT_TRUE(found_by_watchdog(event));
  EXPECT_FALSE(timed.done(event));  // its own path stays the same
  timed.recorded(later, network);
  EXPECT_TRUE(found_by_watchdog(event));
  EXPECT_FALSE(found_by_watchdog(later));
  for (int i = 0; i < 10; ++i) {  // the program goes on
    hand += 1'000'000'000;
    Event other;
    timed.recorded(other, network);
    EXPECT_FALSE(found_by_watchdog(other));
  }
  EXPECT_TRUE(found_by_watchdog(later));
}

TEST_F(ProgressTest, APollEndsAndAWatchdogDoesNotHastenIt) {
  progress.recorded(event, network);
  std::thread watchdog([&] {
    for (int i = 0; i < 60; ++i) EXPECT_FALSE(progress.done(event));
  });
  watchdog.join();
  int asked = 1;
  while (!progress.done(event) && asked < 1000) ++asked;
  EXPECT_GT(asked, 10);
  EXPECT_LT(asked, 1000);
}

}  // namespace
}  // namespace maya::session
