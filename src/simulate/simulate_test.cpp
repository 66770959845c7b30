// Cases whose result can be computed by hand.
#include "maya/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collate/testing/recording_builder.h"
#include "maya/collate.h"
#include "simulate/model.h"
#include "simulate/testing/plain_machine.h"

namespace maya {
namespace {

using simulate::Model;
using simulate::one;
using simulate::Timeline;
using testing::plain_cluster;
using testing::RecordingBuilder;

job::Job collated(std::vector<trace::Recording> recordings, collate::Options options = {}) {
  if (options.steps == 0 && options.step_range.empty()) options.steps = 1;
  auto job = collate::collate(std::move(recordings), options);
  EXPECT_TRUE(job) << (job ? "" : job.error().message);
  return job ? std::move(*job) : job::Job{};
}

Timeline run(const job::Job& job, const catalog::Cluster& cluster = plain_cluster(),
             int channels = 0) {
  simulate::Options options;
  options.keep_spans = true;
  auto timeline =
      simulate::simulate(job, cluster, testing::SizeEstimator(),
                         testing::SizeNetwork(cluster.gpus_per_node, channels), options);
  EXPECT_TRUE(timeline) << (timeline ? "" : timeline.error().message);
  return timeline ? std::move(*timeline) : Timeline{};
}

Timeline run(RecordingBuilder& r, const catalog::Cluster& cluster = plain_cluster()) {
  std::vector<trace::Recording> ranks;
  ranks.push_back(r.done());
  return run(collated(std::move(ranks)), cluster);
}

TEST(Simulate, KernelsOfOneStreamRunInOrder) {
  RecordingBuilder r;
  r.kernel(100).kernel(200).kernel(300);
  EXPECT_EQ(run(r).end_ns, 600);
}

TEST(Simulate, PerfectOverlapOfComputationAndCommunication) {
  // Two ranks: 1000 ns of computation, and in parallel a collective of 800 ns on another stream.
  std::vector<trace::Recording> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    RecordingBuilder r(rank, 2);
    auto world = r.communicator(5, {0, 1});
    r.create_stream(1).on(1).collective(world, 800).on(0).kernel(1000).device_sync();
    ranks.push_back(r.done());
  }
  job::Job job = collated(std::move(ranks));
  EXPECT_EQ(job.classes.size(), 1u);
  Timeline t = run(job);
  EXPECT_EQ(t.end_ns, 1000);
  EXPECT_DOUBLE_EQ(t.breakdown[0].compute_ns, 1000);
  EXPECT_DOUBLE_EQ(t.breakdown[0].communication_ns, 800);
  EXPECT_DOUBLE_EQ(t.breakdown[0].exposed_communication_ns, 0);
}

TEST(Simulate, ExposedAllReduceStartsWithTheLastRank) {
  std::vector<trace::Recording> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    RecordingBuilder r(rank, 2);
    auto world = r.communicator(5, {0, 1});
    r.kernel(rank == 0 ? 300 : 700).collective(world, 400).kernel(100);
    ranks.push_back(r.done());
  }
  job::Job job = collated(std::move(ranks));
  EXPECT_EQ(job.classes.size(), 2u);
  Timeline t = run(job);
  EXPECT_EQ(t.end_ns, 1200);
  EXPECT_DOUBLE_EQ(t.breakdown[0].communication_ns, 800);  // rank 0 waits for rank 1
  EXPECT_DOUBLE_EQ(t.breakdown[1].exposed_communication_ns, 400);
  // The path runs through the slow rank.
  ASSERT_EQ(t.critical_path.size(), 3u);
  EXPECT_EQ(t.critical_path[0].rank_class, 1u);
  EXPECT_EQ(t.critical_path[0].end_ns - t.critical_path[0].start_ns, 700);
  EXPECT_EQ(t.critical_path[1].what, simulate::CriticalLink::What::communication);
}

TEST(Simulate, LargeJobKeepsSpansOfFirstAndLastClass) {
  std::vector<trace::Recording> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    RecordingBuilder r(rank, 4);
    auto world = r.communicator(5, {0, 1, 2, 3});
    for (int i = 0; i < 10 + rank; ++i) r.kernel(100);
    r.collective(world, 400);
    ranks.push_back(r.done());
  }
  const job::Job job = collated(std::move(ranks));
  ASSERT_EQ(job.classes.size(), 4u);
  const catalog::Cluster cluster = plain_cluster();
  simulate::Options options;
  options.keep_spans = true;
  options.most_spans = 12;
  auto t = simulate::simulate(job, cluster, testing::SizeEstimator(),
                              testing::SizeNetwork(cluster.gpus_per_node, 0), options);
  ASSERT_TRUE(t);
  std::vector<std::int32_t> shown;
  for (const simulate::Span& span : t->spans) {
    const std::int32_t rank = job.classes[span.rank_class].representative;
    if (std::find(shown.begin(), shown.end(), rank) == shown.end()) shown.push_back(rank);
  }
  std::sort(shown.begin(), shown.end());
  EXPECT_EQ(shown, (std::vector<std::int32_t>{0, 3}));
  ASSERT_EQ(t->notes.size(), 1u);
  EXPECT_NE(t->notes[0].find("2 of 4 groups of ranks"), std::string::npos);
  EXPECT_EQ(t->end_ns, run(job).end_ns);
}

// Pipeline of p stages and m micro-batches, forward only: (m + p - 1) slots, of which p - 1 are
// bubble.
TEST(Simulate, PipelineBubble) {
  constexpr int p = 4, m = 6, slot = 1000;
  std::vector<trace::Recording> ranks;
  std::vector<std::int32_t> all{0, 1, 2, 3};
  for (int stage = 0; stage < p; ++stage) {
    RecordingBuilder r(stage, p);
    auto world = r.communicator(5, all);
    r.create_stream(1).create_stream(2);
    for (int batch = 0; batch < m; ++batch) {
      auto event = static_cast<std::uint32_t>(2 * batch);
      if (stage > 0) r.on(1).receive(world, stage - 1, 1).record(event).on(0).wait(event);
      r.on(0).kernel(slot);
      if (stage < p - 1) r.record(event + 1).on(2).wait(event + 1).send(world, stage + 1, 1).on(0);
    }
    r.device_sync();
    ranks.push_back(r.done());
  }
  Timeline t = run(collated(std::move(ranks)));
  EXPECT_NEAR(static_cast<double>(t.end_ns), (m + p - 1) * slot, 4 * p);
  for (const auto& b : t.breakdown) {
    double bubble = 1 - b.compute_ns / static_cast<double>(t.end_ns);
    EXPECT_NEAR(bubble, double(p - 1) / (m + p - 1), 0.01);
  }
}

TEST(Simulate, LaunchBoundLoop) {
  catalog::Cluster cluster = plain_cluster();
  cluster.host.launch_us = 5;
  RecordingBuilder r;
  r.host(1000);
  for (int i = 0; i < 100; ++i) r.kernel(2000);
  Timeline t = run(r, cluster);
  EXPECT_EQ(t.end_ns, 100 * 6000 + 2000);  // the host is the bottleneck
  EXPECT_NEAR(t.breakdown[0].host_bound_ns, t.breakdown[0].idle_ns, 6001);
}

TEST(Simulate, HostSpeedScalesRecordedTimeOnly) {
  catalog::Cluster cluster = plain_cluster();
  cluster.host.launch_us = 5;
  cluster.host.speed = 2;
  RecordingBuilder r;
  r.host(1000);
  for (int i = 0; i < 100; ++i) r.kernel(2000);
  EXPECT_EQ(run(r, cluster).end_ns, 100 * 5500 + 2000);
}

// 8 ms of host time, 6 of them as one of two threads that work together.
trace::Record divided_gap(bool set = false) {
  trace::Record gap{};
  gap.kind = trace::Kind::host_gap;
  gap.value = 8000;
  gap.stream = 2;
  gap.aux = static_cast<std::uint16_t>(0xffff * 3 / 4);
  if (set) gap.flags = trace::threads_set;
  return gap;
}

TEST(Simulate, WorkOfSeveralThreadsIsDividedAmongTheCoresOfTheRank) {
  catalog::Cluster cluster = plain_cluster();
  cluster.gpus_per_node = 8;
  cluster.host.cores = 48, cluster.host.memory_gbps = 1000, cluster.host.core_gbps = 10;
  EXPECT_NEAR(static_cast<double>(Model::from(cluster, {}).gap_ns(divided_gap())), 4e6, 1e3);
  cluster.extra["host.ranks"] = 1;
  EXPECT_NEAR(static_cast<double>(Model::from(cluster, {}).gap_ns(divided_gap())), 2.25e6, 1e3);
}

TEST(Simulate, WorkOfSeveralThreadsIsLimitedByMemoryBandwidth) {
  catalog::Cluster cluster = plain_cluster();
  cluster.gpus_per_node = 1;
  cluster.host.cores = 48, cluster.host.memory_gbps = 40, cluster.host.core_gbps = 10;
  EXPECT_NEAR(static_cast<double>(Model::from(cluster, {}).gap_ns(divided_gap())), 5e6, 1e3);
}

TEST(Simulate, ANumberOfThreadsThatWasSetHoldsOnTheTarget) {
  catalog::Cluster cluster = plain_cluster();
  cluster.gpus_per_node = 1;
  EXPECT_NEAR(static_cast<double>(Model::from(cluster, {}).gap_ns(divided_gap(true))), 8e6, 1e3);
}

TEST(Simulate, FullLaunchQueueBlocksTheHost) {
  catalog::Cluster cluster = plain_cluster();
  cluster.host.launch_queue_depth = 2;
  RecordingBuilder r;
  r.host(10);
  for (int i = 0; i < 4; ++i) r.kernel(1000);
  Timeline t = run(r, cluster);
  EXPECT_EQ(t.end_ns, 10 + 4 * 1000);
  EXPECT_EQ(t.spans[2].issue_ns, 10 + 1000);  // the third launch had to wait for the first kernel
  EXPECT_EQ(t.spans[3].issue_ns, 10 + 2000);
}

TEST(Simulate, LegacyDefaultStreamSerializes) {
  RecordingBuilder r;
  r.create_stream(1, false).create_stream(2, false).create_stream(3, true);
  r.on(1).kernel(100, "k", 1).on(2).kernel(200, "k", 1).on(3).kernel(1000, "k", 1);
  r.on(0).flags(trace::legacy).kernel(50, "k", 1);  // after streams 1 and 2, not 3
  r.on(1).kernel(10, "k", 1).on(2).kernel(10, "k", 1);
  Timeline t = run(r);
  auto of = [&](std::uint32_t record) {
    for (const auto& s : t.spans)
      if (s.record == record) return s.start_ns;
    return std::int64_t{-1};
  };
  EXPECT_EQ(of(3), 0);
  EXPECT_EQ(of(4), 0);
  EXPECT_EQ(of(5), 0);
  EXPECT_EQ(of(6), 200);
  EXPECT_EQ(of(7), 250);
  EXPECT_EQ(of(8), 250);
}

TEST(Simulate, EventWaitRefersToTheLatestRecordBeforeIt) {
  RecordingBuilder r;
  r.create_stream(1);
  r.on(0).kernel(100, "k", 1).record(9).kernel(500, "k", 1);
  r.on(1).wait(9).kernel(10, "k", 1);
  r.on(0).record(9);  // recorded after the wait
  Timeline t = run(r);
  EXPECT_EQ(t.end_ns, 600);
  EXPECT_EQ(t.spans[2].end_ns, 110);
}

TEST(Simulate, BlockingCallsWaitAndFreeSynchronizes) {
  RecordingBuilder r;
  r.host(10).kernel(1000).sync().kernel(500);
  r.wide(trace::Kind::release, trace::MemoryKind::device, 1 << 20).kernel(1);
  Timeline t = run(r);
  EXPECT_EQ(t.spans[1].issue_ns, 1010 + 10);
  EXPECT_EQ(t.spans[2].issue_ns, 1020 + 500 + 10);
}

TEST(Simulate, KernelsShareTheSms) {
  RecordingBuilder r;
  r.create_stream(1);
  r.on(0).kernel(1000, "k", 100).on(1).kernel(1000, "k", 100);  // 100 SMs, a block each
  EXPECT_EQ(run(r).end_ns, 2000);
  RecordingBuilder small;
  small.create_stream(1);
  small.on(0).kernel(1000, "k", 50).on(1).kernel(1000, "k", 50);
  EXPECT_EQ(run(small).end_ns, 1000);
}

TEST(Simulate, CommunicationTakesSms) {
  std::vector<trace::Recording> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    RecordingBuilder r(rank, 2);
    auto world = r.communicator(5, {0, 1});
    r.create_stream(1).on(1).collective(world, 500).on(0).kernel(1000).device_sync();
    ranks.push_back(r.done());
  }
  // 20 of 100 SMs are taken for 500 ns: the kernel has done 400 ns of its work by then.
  EXPECT_NEAR(static_cast<double>(run(collated(std::move(ranks)), plain_cluster(), 20).end_ns),
              1100, 1);
}

TEST(Simulate, CopyEnginesOnePerDirection) {
  RecordingBuilder r;
  r.create_stream(1).create_stream(2);
  r.on(0).copy(100, CopyDirection::host_to_device).on(1).copy(100, CopyDirection::host_to_device);
  r.on(2).copy(150, CopyDirection::device_to_host);
  EXPECT_EQ(run(r).end_ns, 200);
}

TEST(Simulate, GraphRunsBranchesInParallel) {
  RecordingBuilder r;
  RecordingBuilder::Record ignored;
  (void)ignored;
  auto a = r.kernel_op(100, "k", 10), b = r.kernel_op(300, "k", 10), c = r.kernel_op(50, "k", 10);
  auto node = [](std::uint32_t op, std::vector<std::uint32_t> after) {
    trace::GraphNode n;
    n.record.kind = trace::Kind::launch;
    n.record.value = op;
    n.after = std::move(after);
    return n;
  };
  // a → {b, c} → a
  auto g = r.graph({node(a, {}), node(b, {0}), node(c, {0}), node(a, {1, 2})});
  r.add(trace::Kind::graph_launch, g).add(trace::Kind::graph_launch, g);
  Timeline t = run(r);
  EXPECT_EQ(t.end_ns, 2 * (100 + 300 + 100));
  EXPECT_EQ(t.simulated_ops, 8u);
}

TEST(Simulate, ThreadsRunInParallelUnlessResumed) {
  RecordingBuilder r;
  r.host(1000).thread(0).kernel(1).thread(1).kernel(1);
  EXPECT_EQ(run(r).end_ns, 1002);
  RecordingBuilder s;
  s.host(1000).thread(0).kernel(1).thread(1).flags(trace::resumed).kernel(1);
  EXPECT_EQ(run(s).end_ns, 2001);
}

// Thread 0 works for 400 ns, hands over to thread 1 and waits for it.
TEST(Simulate, WorkBeforeAWaitIsNotDoneAgainAfterIt) {
  RecordingBuilder r;
  r.thread(0).host(100).kernel(1);
  r.host(300).flags(trace::sleeps).add(trace::Kind::host_gap);
  r.thread(1).host(50).flags(trace::resumed).kernel(1);  // at 450
  r.thread(0).host(20).flags(trace::resumed).kernel(1);  // at 470
  EXPECT_EQ(run(r).end_ns, 471);
  RecordingBuilder early;
  early.thread(0).host(100).kernel(1);
  early.host(300).flags(trace::sleeps).add(trace::Kind::host_gap);
  early.thread(1).host(10).kernel(1);  // done before thread 0 waits
  early.thread(0).host(20).flags(trace::resumed).kernel(1);
  EXPECT_EQ(run(early).end_ns, 421);
}

TEST(Simulate, StepsBeforeARankWasKilledAreMeasured) {
  std::vector<trace::Recording> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    RecordingBuilder r(rank, 2);
    auto world = r.communicator(5, {0, 1});
    for (int step = 0; step < 6 - 2 * rank; ++step)
      r.kernel(100).collective(world, 50).optimizer(10);
    ranks.push_back(r.done());
  }
  ranks[1].complete = false;
  auto job = collate::collate(std::move(ranks));
  ASSERT_TRUE(job) << job.error().message;
  Timeline t = run(*job);
  EXPECT_EQ(t.step_ns, 160);
  EXPECT_FALSE(t.notes.empty());
}

TEST(Simulate, DeadlockIsAnErrorThatNamesTheWaitingRanks) {
  // Two ranks call two collectives in opposite order on one stream each: a real job would hang.
  std::vector<trace::Recording> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    RecordingBuilder r(rank, 2);
    auto a = r.communicator(5, {0, 1}), b = r.communicator(6, {0, 1});
    r.collective(rank == 0 ? a : b, 10).collective(rank == 0 ? b : a, 10);
    ranks.push_back(r.done());
  }
  auto t = simulate::simulate(collated(std::move(ranks)), plain_cluster(), testing::SizeEstimator(),
                              testing::SizeNetwork());
  ASSERT_FALSE(t);
  EXPECT_NE(t.error().message.find("rank 1"), std::string::npos) << t.error().message;
}

TEST(Simulate, IntervalFollowsTheUncertaintyOfTheCriticalPath) {
  RecordingBuilder r;
  r.kernel(1000).kernel(1000);
  Timeline t = run(r);
  EXPECT_DOUBLE_EQ(t.step_ns, 2000);
  EXPECT_NEAR(t.step_low_ns, 1800, 1e-6);  // one family: errors add up
  EXPECT_NEAR(t.step_high_ns, 2400, 1e-6);
  RecordingBuilder two;
  two.kernel(1000).optimizer(1000);
  t = run(two);
  EXPECT_NEAR(t.step_high_ns, 2000 + 200 * std::sqrt(2.0), 1e-6);  // two independent families
  double sum = 0;
  for (const simulate::FamilyTime& family : t.families) sum += family.ns;
  EXPECT_EQ(t.families.size(), 2u);
  EXPECT_DOUBLE_EQ(sum, t.step_ns);
  EXPECT_NEAR(t.families[0].high_ns, 1200, 1e-6);
  catalog::Cluster cluster = plain_cluster();
  cluster.extra["uncertainty.board"] = 0.1;  // common to both
  RecordingBuilder same;
  same.kernel(1000).optimizer(1000);
  t = run(same, cluster);
  EXPECT_NEAR(t.step_high_ns, 2000 + 200 * std::sqrt(3.0), 1e-6);
}

TEST(Simulate, HostTimesOfABusyMachineMayBeMuchTooLong) {
  job::Job jobs[3];
  Timeline found[3];
  const double spreads[] = {1, 1.1, 1.5};
  for (int i = 0; i < 3; ++i) {
    RecordingBuilder r;
    r.host(100'000).kernel(1);
    std::vector<trace::Recording> ranks;
    ranks.push_back(r.done());
    jobs[i] = collated(std::move(ranks));
    jobs[i].host_spread = spreads[i];
    found[i] = run(jobs[i]);
  }
  EXPECT_DOUBLE_EQ(found[0].step_low_ns, found[1].step_low_ns) << "as on an idle machine";
  EXPECT_NEAR(found[2].step_low_ns / found[2].step_ns, 1 / (1.5 * 1.5), 1e-3);
  EXPECT_DOUBLE_EQ(found[2].step_high_ns, found[0].step_high_ns) << "disturbances only add";
}

TEST(Simulate, CommunicationCostsMatrixProductsWholeWaves) {
  catalog::Cluster cluster = plain_cluster();
  cluster.gpu.sms = 132;
  auto model = [&](int capability) {
    cluster.gpu.capability_major = capability;
    return Model::from(cluster, {});
  };
  Op large, small;
  large.work = Gemm{.m = 14336, .n = 16384, .k = 4096, .compute = DType::bf16};
  small.work = Gemm{.m = 1024, .n = 1024, .k = 256, .compute = DType::bf16};
  const std::uint32_t left = one / 132 * 108;
  Model hopper = model(9), ampere = model(8);
  // Each block occupies an SM to its end; blocks without an SM start when others have ended.
  EXPECT_EQ(hopper.product_blocks(large.work), 132u);
  EXPECT_EQ(hopper.rate_on(left, hopper.kernel_share(large), 132), one / 2);
  // With many waves of blocks the rate is nearly the share of the SMs.
  EXPECT_NEAR(ampere.rate_on(left, one, ampere.product_blocks(large.work)), one * 108.0 / 132,
              0.01 * one);
  // If there are fewer blocks than remaining SMs, nothing is lost.
  EXPECT_EQ(hopper.product_blocks(small.work), 64u);
  EXPECT_EQ(
      hopper.rate_on(std::min(left, hopper.kernel_share(small)), hopper.kernel_share(small), 64),
      one);
}

TEST(Simulate, TooSmallClusterIsAnError) {
  RecordingBuilder r(0, 16);
  r.kernel(1);
  std::vector<trace::Recording> one;
  one.push_back(r.done());
  auto t = simulate::simulate(collated(std::move(one)), plain_cluster(8), testing::SizeEstimator(),
                              testing::SizeNetwork());
  ASSERT_FALSE(t);
  EXPECT_NE(t.error().message.find("plain:2"), std::string::npos) << t.error().message;
}

}  // namespace
}  // namespace maya
