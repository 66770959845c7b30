#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"
#include "maya/collate.h"

namespace maya {
namespace {

using job::StepsFoundBy;
using testing::RecordingBuilder;

job::Job found(RecordingBuilder& r, collate::Options options = {}) {
  std::vector<trace::Recording> one;
  one.push_back(r.done());
  auto job = collate::collate(std::move(one), options);
  EXPECT_TRUE(job) << (job ? "" : job.error().message);
  return job ? std::move(*job) : job::Job{};
}

// Initializes weights; nothing like it happens again.
void initialize(RecordingBuilder& r) {
  for (int i = 0; i < 30; ++i) r.kernel(1, "init" + std::to_string(i % 7));
}

RecordingBuilder& gemm(RecordingBuilder& r, std::int64_t n) {
  for (std::uint32_t i = 0; i < r.recording().ops.size(); ++i)
    if (const auto* other = std::get_if<Gemm>(&r.recording().ops[i].work);
        other != nullptr && other->n == n)
      return r.add(trace::Kind::launch, i);
  return r.add(trace::Kind::launch, r.op({Gemm{64, n, 64}, "gemm"}));
}

void micro_batch(RecordingBuilder& r, int layers = 6) {
  r.kernel(2, "embed");
  for (int l = 0; l < layers; ++l) gemm(r, 10).kernel(5, "norm");
  r.kernel(3, "loss");
  for (int l = 0; l < layers; ++l) gemm(r, 20).kernel(8, "norm_backward");
}

std::size_t measured(const job::Job& job) {
  return static_cast<std::size_t>(std::count(job.measured.begin(), job.measured.end(), 1));
}

TEST(Steps, ByOptimizer) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 10; ++s) {
    micro_batch(r);
    for (int i = 0; i < 4; ++i) r.optimizer(100).kernel(1, "between");
  }
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
  EXPECT_EQ(job.steps(), 10u);
  EXPECT_GE(measured(job), 8u);
}

TEST(Steps, TensorListCopiedBetweenForwardAndBackwardIsNotAnUpdate) {
  for (auto kind : {OptimizerKind::adamw, OptimizerKind::other}) {
    RecordingBuilder r;
    initialize(r);
    std::uint32_t copied = r.op({OptimizerStep{OptimizerKind::other, 1, 1}, "foreach_copy"});
    std::uint32_t update = r.op({OptimizerStep{kind, 100000, 50}, "update"});
    for (int s = 0; s < 6; ++s) {
      gemm(r, 10).add(trace::Kind::launch, copied);
      gemm(r, 20).kernel(8, "norm").add(trace::Kind::launch, update);
    }
    EXPECT_EQ(found(r).steps(), 6u);
  }
}

// FSDP copies lists of parameters layer by layer; the update combines two lists.
TEST(Steps, LargeTensorListsCopiedInEveryLayerAreNotUpdates) {
  RecordingBuilder r;
  initialize(r);
  auto list = [&](std::int64_t lists, const char* name) {
    OptimizerStep work{OptimizerKind::other, 100000, 50};
    work.bytes_read = lists * 4 * work.elements, work.bytes_written = 4 * work.elements;
    return r.op({work, name});
  };
  const std::uint32_t copied = list(1, "foreach_copy"), update = list(2, "foreach_add");
  for (int s = 0; s < 6; ++s) {
    for (int layer = 0; layer < 5; ++layer) gemm(r, 10).add(trace::Kind::launch, copied);
    gemm(r, 20).kernel(8, "norm").add(trace::Kind::launch, update).add(trace::Kind::launch, update);
  }
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
  EXPECT_EQ(job.steps(), 6u);
}

// The program shuts down for a second before its last synchronization. This is not part of a step.
TEST(Steps, LastStepEndsBeforeTheProgram) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 6; ++s) {
    r.add(trace::Kind::range_push, 0);
    micro_batch(r);
    r.optimizer(100).add(trace::Kind::range_pop, 0);
  }
  r.recording().strings = {"step"};
  r.host(1000000000).add(trace::Kind::device_synchronize);
  job::Job job = found(r);
  EXPECT_EQ(job.steps(), 6u);
  const auto& records = job.classes[0].recording.records;
  EXPECT_EQ(job.classes[0].step_begin.back(), records.size() - 1);
}

// An optimizer written tensor by tensor, with the backward pass in a thread of its own.
struct WrittenOut {
  RecordingBuilder r;
  void pass(int layers = 6) {
    for (int l = 0; l < layers; ++l) gemm(r, 10).kernel(5, "norm");
  }
  void train(int layers = 6) {
    pass(layers);
    r.thread(1);
    for (int l = 0; l < layers; ++l) gemm(r, 20).kernel(8, "norm_backward");
    r.thread(0);
  }
  void update(int tensors = 12) {
    for (int t = 0; t < tensors; ++t) r.kernel(1, "decay").kernel(2, "sign").kernel(1, "apply");
  }
};

TEST(Steps, ByBackwardPassWithEvaluationInBetween) {
  WrittenOut w;
  initialize(w.r);
  for (int s = 0; s < 9; ++s) {
    w.train(), w.update();
    if (s % 3 == 2)
      for (int e = 0; e < 4; ++e) w.pass();
  }
  job::Job job = found(w.r);
  EXPECT_EQ(job.found_by, StepsFoundBy::backward);
  EXPECT_EQ(job.steps(), 9u);
  EXPECT_EQ(job.measured[3], 0);
  EXPECT_EQ(job.measured[4], 1);
}

// Clipping uses a multi-tensor kernel but is not an update, so the backward pass is used.
TEST(Steps, ByBackwardPassIfOnlyClippingIsMultiTensor) {
  WrittenOut w;
  initialize(w.r);
  const std::uint32_t clip = w.r.op({OptimizerStep{OptimizerKind::other, 100000, 50}, "clip"});
  for (int s = 0; s < 9; ++s) {
    w.train();
    w.r.add(trace::Kind::launch, clip);
    w.update(200);
    w.r.kernel(1, "log");
    if (s % 3 == 2) w.pass();
  }
  job::Job job = found(w.r);
  EXPECT_EQ(job.found_by, StepsFoundBy::backward);
  EXPECT_EQ(job.steps(), 9u);
  EXPECT_EQ(job.measured[3], 0);
  EXPECT_EQ(job.measured[4], 1);
}

// With a CPU optimizer the device sees gradients leave and weights come back.
TEST(Steps, UpdateOnTheHostIsCertainAndMicroBatchIsNot) {
  constexpr std::int64_t gradients = 16 << 20, batch = 1 << 14;
  for (bool weights_return : {true, false}) {
    WrittenOut w;
    initialize(w.r);
    for (int s = 0; s < 9; ++s) {
      w.r.copy(batch, CopyDirection::host_to_device);
      w.train();
      w.r.copy(gradients, CopyDirection::device_to_host);
      if (weights_return) w.r.copy(gradients / 2, CopyDirection::host_to_device);
    }
    const auto seen = collate::steady_steps(w.r.done());
    EXPECT_GE(seen.count, 6u);
    EXPECT_EQ(seen.certain, weights_return);
  }
}

// Two optimizers without kernels of their own, one of which computes products for its updates.
TEST(Steps, ByWhatOptimizersSay) {
  WrittenOut w;
  initialize(w.r);
  const auto adam = w.r.string("optimizer DistAdam 0"), muon = w.r.string("optimizer Muon 1");
  for (int s = 0; s < 6; ++s) {
    for (int b = 0; b < 2; ++b) w.train();
    w.update();
    // Called once for each of its parts.
    for (int part = 0; part < 3; ++part)
      w.r.kernel(1, "part").add(trace::Kind::step_boundary, adam);
    gemm(w.r, 30).kernel(2, "apply").add(trace::Kind::step_boundary, muon);
  }
  job::Job job = found(w.r);
  EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
  EXPECT_EQ(job.steps(), 6u);
  EXPECT_TRUE(collate::steady_steps(w.r.done()).certain);
}

// The first updates are made call by call, then they are in the graph that is launched.
TEST(Steps, WhatOptimizersSaidBeforeAGraphTellsNothing) {
  WrittenOut w;
  initialize(w.r);
  const auto source = w.r.string("optimizer SGD 0");
  for (int s = 0; s < 12; ++s) {
    w.train(), w.update();
    if (s < 2) w.r.add(trace::Kind::step_boundary, source);
  }
  job::Job job = found(w.r);
  EXPECT_EQ(job.found_by, StepsFoundBy::backward);
  EXPECT_EQ(job.steps(), 12u);
}

// The same, where the graph is launched by the program and none of its kernels is known to compute
// gradients: PyTorch's example of a captured step.
TEST(Steps, UpdatesInAGraphAreNotThoseThatWereSaid) {
  RecordingBuilder r;
  initialize(r);
  const auto source = r.string("optimizer SGD 0");
  for (int s = 0; s < 3; ++s) {
    for (int i = 0; i < 20; ++i) gemm(r, 30);
    r.kernel(1, "apply").add(trace::Kind::step_boundary, source);
  }
  trace::Graph graph;
  const std::uint32_t product = r.op({Gemm{64, 40, 64}, "gemm"});
  for (std::uint32_t i = 0; i < 20; ++i) {
    trace::GraphNode node;
    node.record.kind = trace::Kind::launch;
    node.record.value = product;
    if (i > 0) node.after = {i - 1};
    graph.nodes.push_back(node);
  }
  r.recording().graphs.push_back(graph);
  for (int s = 0; s < 50; ++s) r.add(trace::Kind::graph_launch, 0);
  EXPECT_GE(found(r).steps(), 49u);
}

// A model without matrix products, convolutions or attention: nothing tells the reports of one
// update from the next one's, so they are not one long step.
TEST(Steps, WhatOptimizersSayNeedsTrainingWork) {
  RecordingBuilder r;
  const auto source = r.string("optimizer SGD 0");
  for (int s = 0; s < 8; ++s) {
    for (int i = 0; i < 6; ++i) r.kernel(i, "layer" + std::to_string(i));
    r.kernel(9, "apply").add(trace::Kind::step_boundary, source);
  }
  EXPECT_GE(found(r).steps(), 7u);
}

TEST(Steps, ByBackwardPassWithGradientAccumulation) {
  for (int evaluations : {0, 3}) {
    WrittenOut w;
    initialize(w.r);
    for (int s = 0; s < 6; ++s) {
      for (int b = 0; b < 4; ++b) w.train();
      w.update();
      if (s % 2 == 1)
        for (int e = 0; e < evaluations; ++e) w.pass();
    }
    job::Job job = found(w.r);
    EXPECT_EQ(job.found_by, StepsFoundBy::backward);
    EXPECT_EQ(job.steps(), 6u) << evaluations;
  }
}

// A compiler tries candidates first, as many times as there are steps; then each step is one launch
// of a graph.
TEST(Steps, GraphHasTheWeightOfItsOps) {
  RecordingBuilder r;
  initialize(r);
  for (int candidate = 0; candidate < 60; ++candidate) {
    for (int i = 0; i < 5; ++i) r.kernel(2, "check");
    gemm(r, 30);
  }
  trace::Graph graph;
  const std::uint32_t product = r.op({Gemm{64, 40, 64}, "gemm"});
  for (std::uint32_t i = 0; i < 20; ++i) {
    trace::GraphNode node;
    node.record.kind = trace::Kind::launch;
    node.record.value = product;
    if (i > 0) node.after = {i - 1};
    graph.nodes.push_back(node);
  }
  r.recording().graphs.push_back(graph);
  for (int s = 0; s < 50; ++s) r.add(trace::Kind::graph_launch, 0);
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::period);
  EXPECT_GE(job.steps(), 49u);
  EXPECT_LE(job.steps(), 50u);
}

TEST(Steps, GradientAccumulationIsOneStep) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 6; ++s) {
    for (int b = 0; b < 8; ++b) micro_batch(r);
    r.optimizer(100).optimizer(100);
  }
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
  EXPECT_EQ(job.steps(), 6u);
}

TEST(Steps, EvaluationInBetweenIsNotMeasured) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 12; ++s) {
    micro_batch(r);
    r.optimizer(100);
    if (s % 4 == 3)
      for (int e = 0; e < 20; ++e)
        for (int l = 0; l < 6; ++l) gemm(r, 10).kernel(5, "norm");
  }
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
  EXPECT_EQ(job.steps(), 12u);
  EXPECT_EQ(job.measured[4], 0);
  EXPECT_EQ(job.measured[8], 0);
  EXPECT_EQ(job.measured[5], 1);
}

TEST(Steps, EvaluationBeforeEverySecondStepIsNotMeasured) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 12; ++s) {
    if (s % 2 == 1)
      for (int l = 0; l < 30; ++l) gemm(r, 10).kernel(5, "norm");
    micro_batch(r);
    r.optimizer(100);
  }
  job::Job job = found(r);
  EXPECT_EQ(job.steps(), 12u);
  for (std::size_t s = 4; s < 12; ++s) EXPECT_EQ(job.measured[s], s % 2 == 0) << s;
  ASSERT_FALSE(job.notes.empty());
  EXPECT_NE(job.notes[0].find("6 of 12 steps differ"), std::string::npos) << job.notes[0];
}

TEST(Steps, ASmallerLastBatchIsNotMeasured) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 16; ++s) {
    gemm(r, s % 4 == 3 ? 7 : 10).kernel(5, "norm");
    r.optimizer(100);
  }
  job::Job job = found(r);
  EXPECT_EQ(job.steps(), 16u);
  for (std::size_t s = 2; s < 16; ++s) EXPECT_EQ(job.measured[s], s % 4 != 3) << s;
}

TEST(Steps, AlternatingOptimizersMakeOneStep) {
  for (int critics : {1, 5}) {
    RecordingBuilder r;
    initialize(r);
    auto critic = r.op({OptimizerStep{OptimizerKind::adamw, 1000, 5}, "critic"});
    auto generator = r.op({OptimizerStep{OptimizerKind::adamw, 3000, 9}, "generator"});
    for (int s = 0; s < 4; ++s) {
      for (int c = 0; c < critics; ++c) {
        micro_batch(r, 2);
        r.add(trace::Kind::launch, critic);
      }
      micro_batch(r, 5);
      r.add(trace::Kind::launch, generator);
    }
    job::Job job = found(r);
    EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
    EXPECT_EQ(job.steps(), 4u) << critics;
  }
}

TEST(Steps, OneUpdateIsOneStepRegardlessOfLayers) {
  RecordingBuilder r;
  initialize(r);
  micro_batch(r, 40);
  r.add(trace::Kind::launch, r.op({OptimizerStep{OptimizerKind::adamw, 1000, 5}, "adamw"}));
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
  EXPECT_EQ(job.steps(), 1u);
  EXPECT_FALSE(job.notes.empty());
}

TEST(Steps, ByPeriodWithoutAnyOptimizerOp) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 8; ++s) {
    for (int b = 0; b < 4; ++b) micro_batch(r);
    for (int i = 0; i < 12; ++i) r.kernel(4, "multiply").kernel(4, "add");  // a for-loop optimizer
  }
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::period);
  EXPECT_GE(job.steps(), 7u);
  EXPECT_LE(job.steps(), 8u);
  std::uint32_t length = job.classes[0].step_begin[2] - job.classes[0].step_begin[1];
  EXPECT_EQ(length, 4u * (2 + 6 * 4) + 24);
}

TEST(Steps, DataDependentVariationDoesNotHideThePeriod) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 9; ++s) {
    r.kernel(2, "embed");
    for (int l = 0; l < 6; ++l) gemm(r, 100 + 13 * ((s * 7 + l) % 5)).kernel(5, "norm");
    if (s % 3 == 1) r.kernel(1, "clip");
    r.kernel(9, "update");
  }
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::period);
  EXPECT_GE(job.steps(), 8u);
}

// Triton's autotuning: five rounds, a warm-up without clearing the cache, then many rounds.
void time_kernel(RecordingBuilder& r, std::int64_t n, int rounds) {
  const std::uint32_t clear = r.op({Fill{256 << 20}, "cudaMemsetAsync"});
  for (int i = 0; i < 5; ++i) gemm(r.add(trace::Kind::fill, clear), n);
  for (int i = 0; i < rounds / 4; ++i) gemm(r, n);
  for (int i = 0; i < rounds; ++i) gemm(r.add(trace::Kind::fill, clear), n);
}

TEST(Steps, BenchmarksOfKernelsAreNoSteps) {
  RecordingBuilder r;
  initialize(r);
  auto forward = [&] {
    r.kernel(2, "embed");
    for (int l = 0; l < 3; ++l) gemm(r, 10).kernel(5, "norm");
  };
  const auto length = 7u;
  for (std::int64_t n : {10, 11, 12}) time_kernel(r, n, 400);
  for (int s = 0; s < 20; ++s) forward();
  time_kernel(r, 13, 400);  // of another shape, later
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::period);
  EXPECT_GE(job.steps(), 18u);
  EXPECT_LE(job.steps(), 20u);
  EXPECT_EQ(job.classes[0].step_begin[2] - job.classes[0].step_begin[1], length);
}

// A command that failed in its second step, cut behind the first one.
TEST(Steps, WholeStepsBeforeAFailureAreKept) {
  for (int steps : {1, 3}) {
    RecordingBuilder r;
    initialize(r);
    for (int s = 0; s < steps; ++s) {
      micro_batch(r);
      r.add(trace::Kind::launch, r.op({OptimizerStep{OptimizerKind::adamw, 1000, 5}, "adamw"}));
    }
    r.recording().complete = false;
    RecordingBuilder other = r;
    job::Job job = found(r, {.whole_steps = true});
    EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
    EXPECT_EQ(job.steps(), static_cast<std::size_t>(steps));
    EXPECT_TRUE(job.unusable_step.empty());
    if (steps == 1) continue;
    job = found(other);  // the last update may have been cut off
    EXPECT_EQ(job.steps(), static_cast<std::size_t>(steps - 1));
  }
}

TEST(Steps, AnOnlyStepInWhichKernelsAreTimedIsOfNoUse) {
  RecordingBuilder r;
  initialize(r);
  micro_batch(r);
  time_kernel(r, 10, 400);
  r.add(trace::Kind::launch, r.op({OptimizerStep{OptimizerKind::adamw, 1000, 5}, "adamw"}));
  r.recording().complete = false;
  job::Job job = found(r, {.whole_steps = true});
  EXPECT_EQ(job.found_by, StepsFoundBy::optimizer);
  EXPECT_EQ(job.steps(), 1u);
  EXPECT_FALSE(job.unusable_step.empty());
}

TEST(Steps, AProgramThatOnlyTimesKernelsHasItsRoundsAsSteps) {
  RecordingBuilder r;
  initialize(r);
  time_kernel(r, 10, 100);
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::period);
  EXPECT_GE(job.steps(), 90u);
}

TEST(Steps, AnnotationsHavePriority) {
  RecordingBuilder r;
  initialize(r);
  auto source = r.string("profiler");
  for (int s = 0; s < 5; ++s) {
    micro_batch(r);
    r.optimizer(1);
    micro_batch(r);
    r.optimizer(1).add(trace::Kind::step_boundary, source);
  }
  job::Job job = found(r);
  EXPECT_EQ(job.found_by, StepsFoundBy::annotation);
  EXPECT_GE(job.steps(), 4u);
  EXPECT_LE(job.steps(), 5u);
}

TEST(Steps, UserNamesARangeOrANumber) {
  auto write = [](RecordingBuilder& r) {
    initialize(r);
    for (int s = 0; s < 6; ++s) {
      r.push("train_step");
      micro_batch(r);
      r.optimizer(1).pop();
    }
  };
  RecordingBuilder by_range, by_number, by_wrong;
  write(by_range), write(by_number), write(by_wrong);
  collate::Options options;
  options.step_range = "train_step";
  job::Job job = found(by_range, options);
  EXPECT_EQ(job.found_by, StepsFoundBy::user);
  EXPECT_EQ(job.steps(), 11u);  // six ranges, and the five segments between them
  EXPECT_EQ(measured(job), 5u);
  options = {};
  options.steps = 6;
  EXPECT_EQ(found(by_number, options).steps(), 6u);
  options.steps = 4;
  std::vector<trace::Recording> one;
  one.push_back(by_wrong.done());
  auto wrong = collate::collate(std::move(one), options);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("4 steps"), std::string::npos);
}

TEST(Steps, WorkOutsideTheNamedRangeIsNotMeasured) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 4; ++s) {
    r.push("train_step");
    micro_batch(r);
    r.pop();
    gemm(r, 64).kernel(10);  // an evaluation
  }
  collate::Options options;
  options.step_range = "train_step";
  job::Job job = found(r, options);
  EXPECT_EQ(job.steps(), 7u);
  EXPECT_EQ(job.measured, (std::vector<std::uint8_t>{0, 0, 1, 0, 1, 0, 1}));
}

TEST(Steps, OneStepIsTheRunAfterInitialization) {
  RecordingBuilder r;
  initialize(r);
  auto first = static_cast<std::uint32_t>(r.recording().records.size());
  gemm(r, 64).kernel(10).kernel(20).kernel(30);
  job::Job job = found(r);
  EXPECT_EQ(job.steps(), 1u);
  EXPECT_EQ(job.classes[0].step_begin[0], first);
  EXPECT_FALSE(job.notes.empty());
}

TEST(Steps, ShutdownIsNotAStep) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 5; ++s) {
    micro_batch(r);
    r.optimizer(1).sync().add(trace::Kind::mark);
  }
  auto end = static_cast<std::uint32_t>(r.recording().records.size());
  r.host(900'000'000).device_sync().add(trace::Kind::mark).copy(8, CopyDirection::device_to_host);
  job::Job job = found(r);
  EXPECT_EQ(job.steps(), 5u);
  EXPECT_EQ(job.classes[0].step_begin.back(), end);
}

TEST(Steps, WarmUpIsExcluded) {
  RecordingBuilder r;
  initialize(r);
  for (int s = 0; s < 8; ++s) {
    r.host(s < 3 ? 9000 : 1000);
    if (s < 2) r.wide(trace::Kind::allocate, trace::MemoryKind::device, 1 << 20);
    micro_batch(r);
    r.optimizer(1);
  }
  job::Job job = found(r);
  EXPECT_EQ(job.steps(), 8u);
  EXPECT_EQ(job.warmup_steps, 3u);
}

}  // namespace
}  // namespace maya
