#include "collate/repetition.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace maya::collate {
namespace {

std::vector<std::uint32_t> letters_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string text_of(const std::vector<Repetition>& sequence) {
  std::string text;
  for (const Repetition& r : sequence) {
    text +=
        r.body.empty() ? std::string(1, static_cast<char>(r.letter)) : "(" + text_of(r.body) + ")";
    if (r.count > 1) text += std::to_string(r.count);
  }
  return text;
}

std::string parsed(const std::string& text) { return text_of(repetitions_of(letters_of(text))); }

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

// Three steps of warm-up forward passes, pairs, the remaining backward passes, an optimizer update.
std::string one_forward_one_backward(int stages, int stage, int micro_batches) {
  const int warm = stages - stage - 1;
  return repeated("i", 1) +
         repeated(repeated("rfs", warm) + "r" + repeated("fxbyr", micro_batches - warm) +
                      repeated("nby", warm) + "o",
                  3);
}

TEST(Repetition, NestsAndCounts) {
  EXPECT_EQ(parsed("aaabcbcbcd"), "a3(bc)3d");
  EXPECT_EQ(parsed("aabaabaab"), "(a2b)3");
  EXPECT_EQ(parsed("abcd"), "abcd");
  EXPECT_EQ(parsed(""), "");
}

TEST(Repetition, ExpandsToTheOriginalSequence) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    while (text.size() < 60) {
      std::string part;
      for (int i = 0, n = 1 + static_cast<int>(random() % 4); i < n; ++i)
        part += static_cast<char>('a' + random() % 3);
      text += repeated(part, 1 + static_cast<int>(random() % 5));
    }
    const auto letters = letters_of(text);
    const auto nested = repetitions_of(letters);
    const auto positions = positions_in(nested, nested);
    ASSERT_EQ(positions.size(), letters.size());
    for (std::uint32_t i = 0; i < positions.size(); ++i) ASSERT_EQ(positions[i], i);
  }
}

TEST(Repetition, ExtrapolatesCountsToAnotherStage) {
  constexpr int stages = 16, micro_batches = 40;
  auto at = [&](int stage) {
    return repetitions_of(letters_of(one_forward_one_backward(stages, stage, micro_batches)));
  };
  const auto a = at(1);
  // In the last stage but one the warm-up loop runs once, so it is not visible as a loop.
  const auto b =
      counted(a, letters_of(one_forward_one_backward(stages, stages - 2, micro_batches)));
  ASSERT_TRUE(b);
  for (int stage = 2; stage < stages - 2; ++stage) {
    const auto order = continued(a, 1, *b, stages - 2, stage);
    ASSERT_TRUE(order) << stage;
    const std::string wanted = one_forward_one_backward(stages, stage, micro_batches);
    EXPECT_EQ(text_of(*order), parsed(wanted));
    // The letters at the chosen positions of the first stage are those of the wanted one.
    const auto letters = letters_of(one_forward_one_backward(stages, 1, micro_batches));
    std::string got;
    for (std::uint32_t position : positions_in(a, *order))
      got += static_cast<char>(letters[position]);
    EXPECT_EQ(got, wanted);
  }
}

TEST(Repetition, DifferentNestingsAndFractionalCountsAreRejected) {
  const auto a = repetitions_of(letters_of("aaaab")), c = repetitions_of(letters_of("aaaac")),
             d = repetitions_of(letters_of("aaab"));
  EXPECT_FALSE(counted(a, letters_of("aaabc")));
  EXPECT_FALSE(counted(a, letters_of("aabab")));
  const auto once = counted(a, letters_of("ab")), never = counted(a, letters_of("b"));
  ASSERT_TRUE(once && never);
  EXPECT_EQ((*once)[0].count, 1u);
  EXPECT_EQ((*never)[0].count, 0u);
  EXPECT_TRUE(continued(a, 1, *once, 4, 2));
  EXPECT_FALSE(continued(a, 1, c, 4, 2));
  EXPECT_FALSE(continued(a, 1, d, 4, 2));      // a third of a repetition each
  EXPECT_FALSE(continued(a, 1, *once, 4, 7));  // negative
}

TEST(Repetition, EndsOfALoopStayAtItsEnds) {
  std::vector<Repetition> model{{'a', {}, 4}}, longer{{'a', {}, 7}}, shorter{{'a', {}, 2}},
      one{{'a', {}, 1}};
  EXPECT_EQ(positions_in(model, longer), (std::vector<std::uint32_t>{0, 1, 2, 2, 2, 2, 3}));
  EXPECT_EQ(positions_in(model, shorter), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(positions_in(model, one), (std::vector<std::uint32_t>{0}));
}

}  // namespace
}  // namespace maya::collate
