#include "collate/grid.h"

#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"
#include "maya/collate.h"

namespace maya {
namespace {

using testing::RecordingBuilder;

// A job with a tensor axis (innermost), a data axis and a pipeline axis, as each rank records it.
struct Cut {
  int tensor, data, stages;
  int world() const { return tensor * data * stages; }

  std::vector<std::int32_t> line(int rank, int stride, int size) const {
    const int base = rank - rank / stride % size * stride;
    std::vector<std::int32_t> ranks;
    for (int i = 0; i < size; ++i) ranks.push_back(base + i * stride);
    return ranks;
  }
  static std::uint64_t id(int kind, const std::vector<std::int32_t>& ranks) {
    return static_cast<std::uint64_t>(kind) << 32 | static_cast<std::uint32_t>(ranks.front());
  }

  trace::Recording record(int rank) const {
    RecordingBuilder r(rank, world());
    const auto t = line(rank, 1, tensor), d = line(rank, tensor, data),
               p = line(rank, tensor * data, stages);
    // All stages of the tensor ranks of one data rank: not an arithmetic sequence.
    std::vector<std::int32_t> model;
    for (std::int32_t stage : line(t.front(), tensor * data, stages))
      for (int i = 0; i < tensor; ++i) model.push_back(stage + i);
    const auto by_data = r.communicator(id(2, d), d),
               by_model = r.communicator(id(4, model), model),
               by_tensor = r.communicator(id(1, t), t), by_stage = r.communicator(id(3, p), p);
    const int stage = rank / (tensor * data);
    for (int step = 0; step < 3; ++step) {
      for (int layer = 0; layer < 4; ++layer) r.kernel(100 + stage).collective(by_tensor, 10);
      if (stage > 0) r.receive(by_stage, stage - 1, 5);
      if (stage + 1 < stages) r.send(by_stage, stage + 1, 5);
      r.collective(by_data, 50).collective(by_model, 1).optimizer(7);
    }
    return r.done();
  }
};

job::Job job_of(const Cut& cut, const std::vector<int>& ranks) {
  std::vector<trace::Recording> recordings;
  for (int rank : ranks) recordings.push_back(cut.record(rank));
  auto job = collate::collate(std::move(recordings));
  EXPECT_TRUE(job) << (job ? "" : job.error().message);
  return job ? std::move(*job) : job::Job();
}

const job::Communicator* find(const job::Job& job, int kind, int first) {
  for (const auto& c : job.communicators)
    if (c.id == Cut::id(kind, {first})) return &c;
  return nullptr;
}

TEST(Grid, OneRankPerStageDeterminesTheMembersOfAllCommunicators) {
  for (const Cut& cut :
       {Cut{8, 4, 8}, Cut{8, 8, 8}, Cut{2, 8, 4}, Cut{4, 1, 16}, Cut{8, 128, 16}}) {
    const int block = cut.tensor * cut.data;
    std::vector<int> ranks;
    for (int stage = 0; stage < cut.stages; ++stage) ranks.push_back(stage * block);
    const job::Job job = job_of(cut, ranks);
    ASSERT_EQ(job.world_size, cut.world());
    for (int rank : ranks) {
      EXPECT_EQ(find(job, 1, rank)->ranks, cut.line(rank, 1, cut.tensor)) << cut.world();
      EXPECT_EQ(find(job, 2, rank)->ranks, cut.line(rank, cut.tensor, cut.data)) << cut.world();
    }
    // The communicator over two axes has a gap of the data ranks between the stages.
    EXPECT_EQ(find(job, 4, 0)->ranks[static_cast<std::size_t>(cut.tensor)], block);
    // The stand-in of every rank is of the same stage.
    for (int rank = 0; rank < cut.world(); ++rank)
      EXPECT_EQ(job.classes[job.class_of_rank[static_cast<std::size_t>(rank)]].representative,
                rank / block * block);
  }
}

TEST(Grid, OneRecordedRankUsesTheUsualOrderOfAxes) {
  const Cut cut{8, 32, 1};
  const job::Job job = job_of(cut, {0});
  EXPECT_EQ(find(job, 1, 0)->ranks, cut.line(0, 1, 8));
  EXPECT_EQ(find(job, 2, 0)->ranks, cut.line(0, 8, 32));
}

TEST(Grid, SecondRecordedRankOverridesTheUsualOrder) {
  // Data ranks inside and tensor ranks outside is unusual. The second recorded rank shows it.
  auto record = [](int rank) {
    RecordingBuilder r(rank, 64);
    std::vector<std::int32_t> data, tensor;
    for (int i = 0; i < 8; ++i)
      data.push_back(rank / 8 * 8 + i), tensor.push_back(rank % 8 + 8 * i);
    auto t = r.communicator(100 + static_cast<std::uint64_t>(tensor[0]), tensor);
    auto d = r.communicator(200 + static_cast<std::uint64_t>(data[0]), data);
    for (int step = 0; step < 3; ++step)
      r.kernel(9).collective(t, 10).collective(t, 10).collective(d, 20).optimizer(2);
    return r.done();
  };
  std::vector<trace::Recording> recordings;
  for (int rank : {0, 1}) recordings.push_back(record(rank));
  auto job = collate::collate(std::move(recordings));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->communicators[0].ranks[1], 8);
  EXPECT_EQ(job->communicators[1].ranks, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Grid, PipelineOverTheCommunicatorOfAllRanksIsDetectedByItsMessages) {
  std::vector<trace::Recording> recordings;
  for (int rank : {0, 8}) {
    RecordingBuilder r(rank, 16);
    std::vector<std::int32_t> all, tensor;
    for (int i = 0; i < 16; ++i) all.push_back(i);
    for (int i = 0; i < 8; ++i) tensor.push_back(rank + i);
    auto w = r.communicator(1, all),
         t = r.communicator(2 + static_cast<std::uint64_t>(rank), tensor);
    for (int step = 0; step < 3; ++step) {
      r.kernel(9 + rank).collective(t, 10);
      rank == 0 ? r.send(w, 8, 4) : r.receive(w, 0, 4);
      r.optimizer(2);
    }
    recordings.push_back(r.done());
  }
  auto job = collate::collate(std::move(recordings));
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_EQ(job->classes.size(), 2u);
  EXPECT_EQ(job->classes[1].ranks.size(), 8u);
  EXPECT_EQ(job->classes[1].ranks.front(), 8);
}

TEST(Grid, MissingStageIsReported) {
  const Cut cut{8, 1, 4};
  const job::Job job = job_of(cut, {0, 8});
  bool noted = false;
  for (const auto& note : job.notes)
    noted |= note.find("with 1 unrecorded rank (16)") != std::string::npos;
  EXPECT_TRUE(noted);
}

}  // namespace
}  // namespace maya
