#include "decode/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace maya::decode {
namespace {

using Numbers = std::vector<std::int32_t>;

TEST(Lengths, SingleTokensLookBackOnTheMeanOfTheirContexts) {
  Numbers starts{0, 1, 2, 3}, keys{100, 7000, 400};
  auto l = typical_lengths(starts.data(), keys.data(), 3, true);
  ASSERT_TRUE(l);
  EXPECT_EQ(l->batch, 3);
  EXPECT_EQ(l->seq_q, 1);
  EXPECT_NEAR(static_cast<double>(l->seq_k), 2500, 2500. / 128);
}

TEST(Lengths, PromptsKeepTheSumOfTheirSquares) {
  Numbers starts{0, 100, 400}, keys{100, 300};
  auto l = typical_lengths(starts.data(), keys.data(), 2, true);
  ASSERT_TRUE(l);
  EXPECT_EQ(l->seq_q, l->seq_k);
  const double pairs = 100 * 101 / 2 + 300 * 301 / 2;
  EXPECT_NEAR(static_cast<double>(2 * l->seq_q * (l->seq_q + 1) / 2), pairs, 0.01 * pairs);
}

TEST(Lengths, TokensBeyondAWindowCountOnce) {
  // Long and short documents: under a window the work follows the tokens and not their squares.
  Numbers starts{0, 200, 9000, 9100}, keys{200, 8800, 100};
  auto l = typical_lengths(starts.data(), keys.data(), 3, true, 128);
  ASSERT_TRUE(l);
  double pairs = 0;
  for (int length : keys)
    for (int row = 1; row <= length; ++row) pairs += std::min(row, 128);
  const auto q = static_cast<double>(l->seq_q);
  EXPECT_NEAR(3 * (128 * 129 / 2 + (q - 128) * 128), pairs, 0.01 * pairs);
  EXPECT_NEAR(q, 9100 / 3., 0.02 * q);
}

TEST(Lengths, PromptsAndTheTokensBesideThemAreKeptApart) {
  Numbers starts{0}, keys;
  for (int i = 0; i < 62; ++i) starts.push_back(i + 1), keys.push_back(1000);
  starts.push_back(62 + 2048), keys.push_back(2048);
  starts.push_back(62 + 2048 + 512), keys.push_back(1024);
  auto l = typical_lengths(starts.data(), keys.data(), 64, true);
  ASSERT_TRUE(l);
  EXPECT_EQ(l->batch, 2);
  const double pairs = 2048.0 * 2049 / 2 + 512 * (1024 - 511 / 2.0);
  const auto q = static_cast<double>(l->seq_q), k = static_cast<double>(l->seq_k);
  EXPECT_NEAR(2 * q * (k - (q - 1) / 2), pairs, 0.02 * pairs);
  EXPECT_EQ(l->short_batch, 62);
  EXPECT_EQ(l->short_q, 1);
  EXPECT_NEAR(static_cast<double>(l->short_k), 1000, 8);
}

TEST(Lengths, ABatchOfOneKindHasNoOther) {
  Numbers starts{0, 4, 5, 8}, keys{100, 200, 300};
  auto l = typical_lengths(starts.data(), keys.data(), 3, true);
  ASSERT_TRUE(l);
  EXPECT_EQ(l->batch, 3);
  EXPECT_EQ(l->short_batch, 0);
}

TEST(Lengths, EmptyPlacesOfABatchDoNotCount) {
  Numbers starts{0, 1, 2, 2, 2}, keys{50, 70, 0, 0};
  auto l = typical_lengths(starts.data(), keys.data(), 4, true);
  ASSERT_TRUE(l);
  EXPECT_EQ(l->batch, 2);
  EXPECT_EQ(l->seq_k, 60);
  Numbers falling{0, 5, 3}, more{9, 9}, fewer{3, 9};
  EXPECT_FALSE(typical_lengths(falling.data(), more.data(), 2, true));
  Numbers fine{0, 5, 8};
  EXPECT_FALSE(typical_lengths(fine.data(), fewer.data(), 2, true));  // more queries than keys
}

Numbers memory;
constexpr std::uint64_t base = 0x7f0000000000;
const void* known(std::uint64_t address, std::uint64_t bytes) {
  if (address < base || address + bytes > base + memory.size() * 4) return nullptr;
  return reinterpret_cast<const char*>(memory.data()) + (address - base);
}

TEST(Lengths, ListsOfStartsAreRecognisedByTheirEnd) {
  Launch launch;
  launch.known = known;
  memory = {0, 3, 4, 9, 9, 9, 77};
  EXPECT_EQ(sequences_in(launch, base, 9), 3);
  EXPECT_EQ(sequences_in(launch, base, 8), 0);
  EXPECT_EQ(sequences_in(launch, base + 4, 9), 0);
  EXPECT_EQ(sequences_in(launch, base, 100), 0);
  EXPECT_EQ(sequences_in(launch, 7, 9), 0);
}

TEST(Lengths, ListsInGraphsMayStopShortOfTheTokensOfTheCapture) {
  Launch launch;
  launch.known = known;
  memory = {0, 1, 2, 3, 3, 3, 3};
  EXPECT_EQ(sequences_in(launch, base, 4), 0);
  EXPECT_EQ(sequences_in(launch, base, 4, true), 3);
  memory = {0, 0, 0};
  EXPECT_EQ(sequences_in(launch, base, 4, true), 0);
}

TEST(Lengths, LongContextsAreRoundedToOnePartIn128) {
  Numbers starts{0, 1}, keys{100};
  EXPECT_EQ(typical_lengths(starts.data(), keys.data(), 1, true)->seq_k, 100);
  for (std::int32_t length : {130, 1000, 7013, 130001}) {
    keys[0] = length;
    const auto k = static_cast<double>(typical_lengths(starts.data(), keys.data(), 1, true)->seq_k);
    EXPECT_NEAR(k, length, length / 250.);
  }
  keys[0] = 7013;
  const auto one = typical_lengths(starts.data(), keys.data(), 1, true)->seq_k;
  keys[0] = 7020;
  EXPECT_EQ(typical_lengths(starts.data(), keys.data(), 1, true)->seq_k, one);
}

}  // namespace
}  // namespace maya::decode
