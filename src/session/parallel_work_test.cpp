#include "session/parallel_work.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>
#include <vector>

namespace maya::session {
namespace {

constexpr std::uint64_t ms = 1'000'000;

TEST(ParallelWork, HelpersThatAreAsBusyWorkTogetherWithTheCaller) {
  EXPECT_EQ(together(10 * ms, 10 * ms, 2), 10 * ms);
  EXPECT_EQ(together(10 * ms, 28 * ms, 5), 7 * ms);  // 3 ms by itself, 7 ms with four helpers
  EXPECT_EQ(together(10 * ms, 50 * ms, 2), 10 * ms);
}

TEST(ParallelWork, ABackgroundThreadIsNoHelper) {
  EXPECT_EQ(together(10 * ms, ms, 2), 0u);
  EXPECT_EQ(together(10 * ms, 4 * ms, 3), 0u);
}

TEST(ParallelWork, ATeamOfOneHasNoHelpers) { EXPECT_EQ(together(10 * ms, 10 * ms, 1), 0u); }

std::uint64_t cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t work(std::uint64_t ns) {
  const std::uint64_t begin = cpu_ns();
  while (cpu_ns() - begin < ns) {
  }
  return cpu_ns() - begin;
}

TEST(ParallelWork, TimeOfHelpersIsClaimedOnce) {
  if (team().threads < 2) GTEST_SKIP() << "one processor";
  claim_parallel_work(0);
  std::vector<std::thread> helpers;
  for (int i = 1; i < team().threads; ++i) helpers.emplace_back([] { work(20 * ms); });
  const std::uint64_t own = work(20 * ms);
  for (std::thread& helper : helpers) helper.join();
  add_caller_time(own);
  EXPECT_GE(claim_parallel_work(own), own * 9 / 10);
  EXPECT_EQ(claim_parallel_work(own), 0u);
}

}  // namespace
}  // namespace maya::session
