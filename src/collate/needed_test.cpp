#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"
#include "maya/collate.h"

namespace maya {
namespace {

using collate::needed_ranks;
using testing::RecordingBuilder;
using Ranks = std::vector<std::int32_t>;

Ranks line(int stride, int size) {
  Ranks ranks;
  for (int i = 0; i < size; ++i) ranks.push_back(i * stride);
  return ranks;
}

TEST(Needed, OneRankIfAllDoIdenticalWork) {
  RecordingBuilder r(0, 64);
  r.collective(r.communicator(1, line(1, 64)), 5).collective(r.communicator(2, line(1, 8)), 5);
  EXPECT_EQ(needed_ranks(r.recording()), (Ranks{0}));
}

TEST(Needed, FiveStagesOfALongPipeline) {
  RecordingBuilder r(0, 64);
  auto stages = r.communicator(1, line(8, 8));
  r.send(stages, 1, 5).receive(stages, 1, 5);
  // The members are not recorded, so stages are assumed to be the outermost axis.
  EXPECT_EQ(needed_ranks(r.recording()), (Ranks{0, 8, 32, 48, 56}));
  r.recording().communicators[0].ranks = line(2, 8);
  EXPECT_EQ(needed_ranks(r.recording()), (Ranks{0, 2, 8, 12, 14}));
  r.send(stages, 7, 5).receive(stages, 7, 5);  // interleaved
  EXPECT_EQ(needed_ranks(r.recording()), (Ranks{0, 2, 8, 12, 14}));
}

TEST(Needed, AllStagesOfAShortPipeline) {
  RecordingBuilder r(0, 10);
  auto stages = r.communicator(1, line(2, 5));
  r.send(stages, 1, 5).receive(stages, 1, 5);
  EXPECT_EQ(needed_ranks(r.recording()), line(2, 5));
}

TEST(Needed, StagesOverTheCommunicatorOfAllRanks) {
  RecordingBuilder r(0, 64);
  auto all = r.communicator(1, line(1, 64));
  r.send(all, 16, 5).receive(all, 16, 5);
  EXPECT_EQ(needed_ranks(r.recording()), line(16, 4));
}

TEST(Needed, RingsAndAllToAllExchangesNeedOneRank) {
  RecordingBuilder r(0, 64);
  auto ring = r.communicator(1, line(1, 8)), experts = r.communicator(2, line(8, 8));
  r.send(ring, 1, 5).receive(ring, 7, 5);
  for (int peer = 0; peer < 8; ++peer) r.send(experts, peer, 5).receive(experts, peer, 5);
  EXPECT_EQ(needed_ranks(r.recording()), (Ranks{0}));
}

TEST(Needed, CombinationsOfTwoAxes) {
  RecordingBuilder r(0, 16);
  auto a = r.communicator(1, line(4, 4)), b = r.communicator(2, line(1, 2));
  r.recording().communicators[1].ranks = line(1, 2);
  r.send(a, 1, 5).receive(a, 1, 5).send(b, 1, 5).receive(b, 1, 5);
  EXPECT_EQ(needed_ranks(r.recording()), (Ranks{0, 1, 4, 5, 8, 9, 12, 13}));
}

}  // namespace
}  // namespace maya
