#include "maya/collate.h"

#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"

namespace maya {
namespace {

using collate::collate;
using testing::RecordingBuilder;

std::vector<trace::Recording> ranks_of(int world,
                                       void (*write)(RecordingBuilder&, int rank, int world)) {
  std::vector<trace::Recording> recordings;
  for (int rank = 0; rank < world; ++rank) {
    RecordingBuilder r(rank, world);
    write(r, rank, world);
    recordings.push_back(r.done());
  }
  return recordings;
}

std::string message(const Result<job::Job>& result) { return result ? "" : result.error().message; }

TEST(Collate, RanksWithIdenticalWorkAndDifferentHostTimesAreOneClass) {
  auto job = collate(ranks_of(8, [](RecordingBuilder& r, int rank, int) {
    auto world = r.communicator(1, {0, 1, 2, 3, 4, 5, 6, 7});
    r.host(static_cast<std::uint32_t>(100 + rank * 7));
    for (int step = 0; step < 4; ++step)
      r.push("rank " + std::to_string(rank))
          .kernel(10)
          .kernel(20)
          .collective(world, 100)
          .optimizer(5)
          .pop();
  }));
  ASSERT_TRUE(job) << message(job);
  ASSERT_EQ(job->classes.size(), 1u);
  EXPECT_EQ(job->classes[0].ranks.size(), 8u);
  EXPECT_EQ(job->communicators.size(), 1u);
  EXPECT_EQ(job->found_by, job::StepsFoundBy::optimizer);
}

TEST(Collate, IdsOfStreamsThreadsAndEventsDoNotMatter) {
  // The default stream of device n is stream n, with a stream_create record for all devices except
  // the first. Threads, events and streams are numbered in order of appearance.
  auto job = collate(ranks_of(4, [](RecordingBuilder& r, int rank, int) {
    auto world = r.communicator(1, {0, 1, 2, 3});
    auto own = static_cast<std::uint16_t>(rank), side = static_cast<std::uint16_t>(10 + rank);
    auto event = static_cast<std::uint32_t>(100 * rank);
    r.thread(own);
    if (rank > 0)
      r.on(own)
          .flags(trace::legacy)
          .add(trace::Kind::stream_create, static_cast<std::uint32_t>(rank), 1000);
    r.wide(trace::Kind::allocate, trace::MemoryKind::device, 64).create_stream(side, true, 0, own);
    r.on(own).flags(trace::legacy).kernel(5).flags(trace::legacy).record(event + 1);
    r.on(side).wait(event + 1).collective(world, 9);
  }));
  ASSERT_TRUE(job) << message(job);
  EXPECT_EQ(job->classes.size(), 1u);
}

TEST(Collate, PipelineStagesAreClasses) {
  // 2 stages × 4 data-parallel ranks; each rank sends to its neighbour.
  auto job = collate(ranks_of(8, [](RecordingBuilder& r, int rank, int) {
    int stage = rank / 4;
    auto pipe = r.communicator(10 + static_cast<std::uint64_t>(rank % 4), {rank % 4, rank % 4 + 4});
    auto data = stage == 0 ? r.communicator(1, {0, 1, 2, 3}) : r.communicator(2, {4, 5, 6, 7});
    for (int step = 0; step < 3; ++step) {
      if (stage == 0)
        r.kernel(10).send(pipe, 1, 8);
      else
        r.receive(pipe, 0, 8).kernel(20);
      r.collective(data, 100).optimizer(5);
    }
  }));
  ASSERT_TRUE(job) << message(job);
  ASSERT_EQ(job->classes.size(), 2u);
  EXPECT_EQ(job->classes[0].ranks, (std::vector<std::int32_t>{0, 1, 2, 3}));
  ASSERT_EQ(job->classes[0].channels.size(), 1u);
  EXPECT_EQ(job->classes[0].channels[0].peer_class, 1u);
}

TEST(Collate, RingOfEqualRanksFoldsAlthoughPeersDiffer) {
  auto job = collate(ranks_of(4, [](RecordingBuilder& r, int rank, int world) {
    auto c = r.communicator(1, {0, 1, 2, 3});
    r.kernel(10)
        .add(trace::Kind::group_begin)
        .send(c, (rank + 1) % world, 8)
        .receive(c, (rank + world - 1) % world, 8)
        .add(trace::Kind::group_end);
  }));
  ASSERT_TRUE(job) << message(job);
  EXPECT_EQ(job->classes.size(), 1u);
}

TEST(Collate, PlacementSplitsClassesThatCommunicateAcrossNodes) {
  auto write = [](RecordingBuilder& r, int rank, int) {
    int pair = rank / 2;  // pairs {0,1}, {2,3}, {4,5}
    auto c = r.communicator(1 + static_cast<std::uint64_t>(pair), {2 * pair, 2 * pair + 1});
    r.kernel(10).collective(c, 8);
  };
  collate::Options options;
  options.gpus_per_node = 2;
  EXPECT_EQ(collate(ranks_of(6, write), options)->classes.size(), 1u);
  options.gpus_per_node = 3;  // {2,3} is on two nodes
  EXPECT_EQ(collate(ranks_of(6, write), options)->classes.size(), 2u);
}

TEST(Collate, ErrorOfAMismatchNamesRankCommunicatorSequenceAndOp) {
  auto job = collate(ranks_of(2, [](RecordingBuilder& r, int rank, int) {
    auto c = r.communicator(0xabc, {0, 1});
    r.collective(c, 100).collective(c, rank == 0 ? 200 : 300);
  }));
  ASSERT_FALSE(job);
  for (const char* part :
       {"0000000000000abc", "sequence number 1", "rank 0", "rank 1", "bytes=200", "bytes=300"})
    EXPECT_NE(message(job).find(part), std::string::npos) << part << " in: " << message(job);
}

TEST(Collate, MissingCallAndMissingReceiveAreErrors) {
  auto short_of_one = collate(ranks_of(2, [](RecordingBuilder& r, int rank, int) {
    auto c = r.communicator(1, {0, 1});
    r.collective(c, 100);
    if (rank == 0) r.collective(c, 100);
  }));
  ASSERT_FALSE(short_of_one);
  EXPECT_NE(message(short_of_one).find("no such call"), std::string::npos);
  auto lost = collate(ranks_of(2, [](RecordingBuilder& r, int rank, int) {
    auto c = r.communicator(1, {0, 1});
    r.kernel(1);
    if (rank == 0) r.send(c, 1, 64);
  }));
  ASSERT_FALSE(lost);
  EXPECT_NE(message(lost).find("receive"), std::string::npos);
}

TEST(Collate, CutOffRecordingIsANote) {
  auto recordings = ranks_of(2, [](RecordingBuilder& r, int rank, int) {
    auto c = r.communicator(1, {0, 1});
    for (int i = 0; i < 6 - 2 * rank; ++i) r.kernel(10).collective(c, 100).optimizer(1);
  });
  recordings[1].complete = false;
  auto job = collate(std::move(recordings));
  ASSERT_TRUE(job) << message(job);
  EXPECT_TRUE(job->truncated);
  EXPECT_EQ(job->classes[0].step_begin.size(), job->classes[1].step_begin.size());
}

TEST(Collate, GpuThatIsOnlyTouchedOnceIsNotCounted) {
  for (bool in_passing : {true, false}) {
    RecordingBuilder r;
    for (int step = 0; step < 30; ++step) {
      r.kernel(10).optimizer(1);
      if (step > 0 && in_passing) continue;
      trace::Record on_gpu_3{trace::Kind::launch, trace::legacy, 0, 5, 3, 0, 0};
      r.recording().records.push_back(on_gpu_3);
    }
    std::vector<trace::Recording> one;
    one.push_back(r.done());
    auto job = collate(std::move(one));
    ASSERT_TRUE(job) << message(job);
    EXPECT_EQ(job->gpus(), in_passing ? 1 : 2);
  }
}

TEST(Collate, UnrecordedRanksUseRecordingsOfStandIns) {
  // 16,384 ranks, two pipeline stages, one recording each.
  std::vector<trace::Recording> recordings;
  for (int rank : {0, 8192}) {
    RecordingBuilder r(rank, 16384);
    std::vector<std::int32_t> tensor;
    for (int i = 0; i < 8; ++i) tensor.push_back(rank + i);
    auto t = r.communicator(1 + static_cast<std::uint64_t>(rank), tensor);
    std::vector<std::int32_t> data;
    for (int i = 0; i < 1024; ++i) data.push_back(rank + 8 * i);
    auto d = r.communicator(77 + static_cast<std::uint64_t>(rank), data);
    for (int s = 0; s < 3; ++s) r.kernel(rank + 5).collective(t, 10).collective(d, 20).optimizer(2);
    recordings.push_back(r.done());
  }
  auto job = collate(std::move(recordings));
  ASSERT_TRUE(job) << message(job);
  ASSERT_EQ(job->classes.size(), 2u);
  EXPECT_EQ(job->classes[0].ranks.size(), 8192u);
  EXPECT_EQ(job->communicators[0].ranks[7], 7);
  EXPECT_EQ(job->communicators[2].ranks[7], 8192 + 7);
  EXPECT_FALSE(job->notes.empty());
}

TEST(Collate, RecordingsOfDifferentJobsAreRejected) {
  auto recordings = ranks_of(2, [](RecordingBuilder& r, int, int) { r.kernel(1); });
  recordings[1].identity.world_size = 4;
  EXPECT_NE(message(collate(std::move(recordings))).find("different jobs"), std::string::npos);
  auto twice = ranks_of(2, [](RecordingBuilder& r, int, int) { r.kernel(1); });
  twice[1].identity.rank = 0;
  EXPECT_NE(message(collate(std::move(twice))).find("rank 0"), std::string::npos);
  EXPECT_FALSE(collate({}));
}

TEST(Collate, IndicesOutsideTheirTablesAreRejected) {
  auto damaged = [](auto&& damage) {
    auto recordings = ranks_of(1, [](RecordingBuilder& r, int, int) {
      auto c = r.communicator(1, {0});
      r.kernel(1).collective(c, 5);
    });
    damage(recordings[0]);
    return message(collate(std::move(recordings)));
  };
  EXPECT_NE(damaged([](auto& r) { r.records[0].value = 99; }).find("record 0 refers to op 99"),
            std::string::npos);
  EXPECT_NE(damaged([](auto& r) { r.records[1].aux = 9; }).find("communicator 9"),
            std::string::npos);
  EXPECT_NE(damaged([](auto& r) { r.records[1].value = 0; }).find("damaged"), std::string::npos);
  EXPECT_NE(damaged([](auto& r) { r.records[0].kind = trace::Kind::graph_launch; }).find("graph"),
            std::string::npos);
  EXPECT_NE(damaged([](auto& r) { r.communicators[0].rank = 5; }).find("damaged"),
            std::string::npos);
}

}  // namespace
}  // namespace maya
