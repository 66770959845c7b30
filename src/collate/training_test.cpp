#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"
#include "maya/collate.h"

namespace maya {
namespace {

using collate::Phase;
using collate::Training;
using testing::RecordingBuilder;

constexpr std::uint16_t program = 1, autograd = 2;

void load(RecordingBuilder& r) {
  r.thread(program);
  for (int i = 0; i < 20; ++i) r.kernel(7, "copy").kernel(3, "cast");
}

std::uint32_t product(RecordingBuilder& r) {
  for (std::uint32_t i = 0; i < r.recording().ops.size(); ++i)
    if (std::holds_alternative<Gemm>(r.recording().ops[i].work)) return i;
  return r.op({Gemm{64, 64, 64}, "gemm"});
}

std::uint32_t lookup(RecordingBuilder& r) {
  for (std::uint32_t i = 0; i < r.recording().ops.size(); ++i)
    if (std::holds_alternative<Gather>(r.recording().ops[i].work)) return i;
  return r.op({Gather{64, 64, 1000}, "embedding"});
}

void forward(RecordingBuilder& r, int layers = 6) {
  r.thread(program).add(trace::Kind::launch, lookup(r)).kernel(4, "add");
  for (int l = 0; l < layers; ++l) r.add(trace::Kind::launch, product(r)).kernel(5, "norm");
}

void backward(RecordingBuilder& r, int layers = 6) {
  r.thread(autograd);
  for (int l = 0; l < layers; ++l) r.add(trace::Kind::launch, product(r)).kernel(6, "norm_grad");
  r.thread(program);
}

void step(RecordingBuilder& r) {
  forward(r);
  backward(r);
  r.optimizer(100);
}

std::vector<trace::Recording> one(RecordingBuilder& r) {
  std::vector<trace::Recording> recordings;
  recordings.push_back(r.done());
  return recordings;
}

TEST(Training, LoadingWeightsIsNotAStep) {
  RecordingBuilder r;
  for (int i = 0; i < 50; ++i) load(r);
  const auto recordings = one(r);
  const Training training(recordings);
  EXPECT_EQ(training.common_steps(), 0u);
  EXPECT_EQ(training.at(0).phase, Phase::loading);
}

TEST(Training, LayersOfTheFirstForwardPassAreNotSteps) {
  RecordingBuilder r;
  load(r);
  forward(r, 40);
  const auto recordings = one(r);
  const Training training(recordings);
  EXPECT_EQ(training.common_steps(), 0u);
  EXPECT_EQ(collate::words(training.at(0)), "in the first forward pass");
}

TEST(Training, ASecondForwardPassIsNotTheFirst) {
  RecordingBuilder r;
  load(r);
  forward(r);
  forward(r, 3);
  const auto recordings = one(r);
  EXPECT_EQ(collate::words(Training(recordings).at(0)),
            "in a forward pass, before any optimizer update");
}

TEST(Training, DistinguishesBackwardPassAndUpdate) {
  RecordingBuilder r;
  load(r);
  forward(r);
  backward(r, 3);
  r.thread(autograd).wide(trace::Kind::out_of_memory, trace::MemoryKind::device, 1 << 20);
  const auto in_backward = static_cast<std::uint32_t>(r.recording().records.size()) - 1;
  backward(r, 3);
  // The state of the optimizer is made in the program's thread, before any kernel of the update.
  r.thread(program).wide(trace::Kind::out_of_memory, trace::MemoryKind::device, 1 << 20);
  const auto in_update = static_cast<std::uint32_t>(r.recording().records.size()) - 1;
  const auto recordings = one(r);
  const Training training(recordings);
  EXPECT_EQ(training.at(0, in_backward).phase, Phase::backward);
  EXPECT_EQ(collate::words(training.at(0, in_update)), "in the first optimizer update");
}

TEST(Training, UpdateThatRanOutOfMemoryIsNotACompleteStep) {
  RecordingBuilder r;
  load(r);
  step(r);
  r.wide(trace::Kind::out_of_memory, trace::MemoryKind::device, 1 << 20);
  const auto recordings = one(r);
  EXPECT_EQ(Training(recordings).common_steps(), 0u);
}

TEST(Training, CommonStepsAreThoseThatAllRanksCompleted) {
  std::vector<trace::Recording> recordings;
  for (int rank = 0; rank < 2; ++rank) {
    RecordingBuilder r(rank, 2);
    load(r);
    for (int k = 0; k < (rank == 0 ? 7 : 5); ++k) step(r);
    forward(r, 2 + rank);
    recordings.push_back(r.done());
  }
  const Training training(recordings);
  EXPECT_EQ(training.common_steps(), 5u);
  EXPECT_EQ(collate::words(training.at(0)), "in the forward pass of step 8");
  // Both are cut where the sixth step begins.
  EXPECT_EQ(training.end_of_common_steps(0), training.end_of_common_steps(1));
  EXPECT_LT(training.end_of_common_steps(1), recordings[1].records.size());
}

TEST(Training, EmptyRecordingHasNoProgress) {
  RecordingBuilder r;
  const auto recordings = one(r);
  EXPECT_EQ(Training(recordings).at(0).phase, Phase::nothing);
}

}  // namespace
}  // namespace maya
