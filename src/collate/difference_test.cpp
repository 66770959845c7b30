#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"
#include "maya/collate.h"

namespace maya {
namespace {

using testing::RecordingBuilder;

Op product(std::int64_t m) {
  Gemm gemm;
  gemm.m = m;
  gemm.n = gemm.k = 1024;
  return {gemm, "product", {}};
}

trace::Recording rank_with(std::initializer_list<std::int64_t> products, int steps = 4) {
  RecordingBuilder r(0, 4);
  for (int step = 0; step < steps; ++step) {
    for (std::int64_t m : products) r.add(trace::Kind::launch, r.op(product(m)));
    r.optimizer(1000);
  }
  return r.done();
}

TEST(Difference, NoneBetweenEqualWorkInAnyOrder) {
  EXPECT_EQ(collate::difference(rank_with({1024, 2048}), rank_with({2048, 1024})), "");
}

TEST(Difference, MoreFlopsAreNamedWithAnExample) {
  const auto words = collate::difference(rank_with({1024, 1024}), rank_with({1024, 2048}));
  EXPECT_EQ(words, "50.0 % more FLOPs, for example in gemm (product)");
}

TEST(Difference, OtherOperationsOfTheSameSizeCount) {
  const auto words = collate::difference(rank_with({1024, 3072}), rank_with({2048, 2048}));
  ASSERT_TRUE(words);
  EXPECT_TRUE(words->starts_with("the same amount of FLOPs in other operations")) << *words;
}

TEST(Difference, RanksThatRecordedOtherNumbersOfStepsDoTheSame) {
  EXPECT_EQ(collate::difference(rank_with({1024}, 9), rank_with({1024}, 3)), "");
}

TEST(Difference, ARankThatWasStoppedInItsFirstStepsIsComparedWithThoseOfTheOther) {
  auto rank = [](int steps) {
    RecordingBuilder r(0, 4);
    for (int step = 0; step < steps; ++step) {
      r.add(trace::Kind::launch, r.op(product(1024)));
      if (step < 3) r.add(trace::Kind::launch, r.op(product(512)));  // sets something up
      r.optimizer(1000);
    }
    return r.done();
  };
  ASSERT_EQ(collate::difference(rank(9), rank_with({1024})), "");
  EXPECT_EQ(collate::difference(rank(9), rank(3)), "");
  EXPECT_NE(collate::difference(rank_with({1024}), rank(3)), "");
}

TEST(Difference, AStepThatWasCutOffInItsUpdateIsNotCompared) {
  RecordingBuilder r(1, 4);
  for (int step = 0; step < 4; ++step) {
    r.add(trace::Kind::launch, r.op(product(1024)));
    r.optimizer(1000);
    if (step < 3) r.optimizer(500'000'000);
  }
  RecordingBuilder whole(0, 4);
  for (int step = 0; step < 6; ++step) {
    whole.add(trace::Kind::launch, whole.op(product(1024)));
    whole.optimizer(1000).optimizer(500'000'000);
  }
  EXPECT_EQ(collate::difference(whole.done(), r.done()), "");
}

TEST(Difference, NotKnownWithoutASteadyStep) {
  EXPECT_EQ(collate::difference(rank_with({1024}), RecordingBuilder(1, 4).done()), std::nullopt);
}

TEST(Difference, CopiesAndSmallKernelsDoNotCount) {
  RecordingBuilder other(1, 4);
  for (int step = 0; step < 4; ++step) {
    other.add(trace::Kind::launch, other.op(product(100000)));
    other.add(trace::Kind::launch, other.op(product(1)));
    other.copy(1 << 30, CopyDirection::device_to_host).optimizer(1000);
  }
  EXPECT_EQ(collate::difference(rank_with({100000}), other.done()), "");
}

}  // namespace
}  // namespace maya
