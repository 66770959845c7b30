#include "session/stream_numbers.h"

#include <gtest/gtest.h>

#include <set>

namespace maya::session {
namespace {

TEST(StreamNumbers, AFewStreamsNeverShareANumber) {
  StreamNumbers numbers;
  std::set<std::uint16_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint16_t number = numbers.take({0, 0, 0});
    EXPECT_TRUE(seen.insert(number).second);
    numbers.give_back({0, 0, 0}, number);
  }
}

TEST(StreamNumbers, AProgramMayMakeMoreStreamsThanThereAreNumbers) {
  StreamNumbers numbers;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint16_t number = numbers.take({0, 1, 0});
    ASSERT_NE(number, 0);
    numbers.give_back({0, 1, 0}, number);
  }
}

TEST(StreamNumbers, ANumberIsUsedAgainForTheSameKindOnly) {
  StreamNumbers numbers;
  std::set<std::uint16_t> first;
  for (int i = 0; i < 2000; ++i) first.insert(numbers.take({0, 0, 0}));
  for (std::uint16_t number : first) numbers.give_back({0, 0, 0}, number);
  EXPECT_FALSE(first.contains(numbers.take({1, 0, 0})));
  EXPECT_FALSE(first.contains(numbers.take({0, 1, 0})));
  EXPECT_EQ(numbers.take({0, 0, 0}), *first.begin());
}

TEST(StreamNumbers, NoneIsLeftWhenAllLive) {
  StreamNumbers numbers;
  for (std::uint32_t i = 0; i < StreamNumbers::most; ++i) ASSERT_NE(numbers.take({0, 0, 0}), 0);
  EXPECT_EQ(numbers.take({0, 0, 0}), 0);
  numbers.give_back({0, 0, 0}, 7);
  EXPECT_EQ(numbers.take({0, 0, 0}), 7);
}

}  // namespace
}  // namespace maya::session
