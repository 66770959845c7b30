#include "collate/host_times.h"

#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"

namespace maya {
namespace {

using testing::RecordingBuilder;

job::Job job_of(RecordingBuilder& r, std::vector<std::uint32_t> begin) {
  job::Job job;
  job.classes.emplace_back();
  job.classes[0].recording = r.done();
  job.measured.assign(begin.size() - 1, 1);
  job.classes[0].step_begin = std::move(begin);
  return job;
}

TEST(HostTimes, DelayInOneStepIsRemoved) {
  RecordingBuilder r;
  r.host(500).kernel(1).host(700).kernel(2);
  r.host(90000).kernel(1).host(600).kernel(2);
  r.host(510).kernel(1).host(80000).kernel(2);
  job::Job job = job_of(r, {0, 2, 4, 6});
  collate::settle_host_times(job, {{}});
  const auto& records = job.classes[0].recording.records;
  EXPECT_EQ(records[2].host_ns, 500u);
  EXPECT_EQ(records[5].host_ns, 600u);
}

TEST(HostTimes, LongGapsBelongToTheirCallAndThreadsMayInterleaveDifferently) {
  RecordingBuilder r;
  r.host(10).kernel(1).thread(1).host(20).kernel(2).thread(0);
  r.thread(1)
      .host(0)
      .add(trace::Kind::host_gap, 5000)
      .host(25)
      .kernel(2)
      .thread(0)
      .host(40)
      .kernel(1);
  job::Job job = job_of(r, {0, 2, 5});
  collate::settle_host_times(job, {{}});
  const auto& records = job.classes[0].recording.records;
  EXPECT_EQ(records[2].value, 0u);  // the gap
  EXPECT_EQ(records[3].host_ns, 20u);
  EXPECT_EQ(records[4].host_ns, 10u);
}

TEST(HostTimes, EqualCallsThatDisagreeAreToldByTheirSpread) {
  RecordingBuilder steady, busy;
  for (int i = 0; i < 5; ++i) steady.host(1000 + 10 * i).kernel(1);
  for (int i = 0; i < 5; ++i) busy.host(1000 + 250 * i).kernel(1);
  job::Job one = job_of(steady, {0, 1, 2, 3, 4, 5}), other = job_of(busy, {0, 1, 2, 3, 4, 5});
  collate::settle_host_times(one, {{}});
  collate::settle_host_times(other, {{}});
  EXPECT_DOUBLE_EQ(one.host_spread, 1.02);
  EXPECT_DOUBLE_EQ(other.host_spread, 1.5);
}

TEST(HostTimes, RanksWithIdenticalWorkAreCompared) {
  RecordingBuilder r, other(1), different(2);
  for (auto* slow : {&r, &other}) slow->host(9000).kernel(1).host(700).kernel(2);
  r.host(8000).kernel(1).host(600).kernel(2);
  other.host(400).kernel(1).host(900).kernel(2);
  different.host(1).kernel(1).host(1).kernel(2).host(1).sync();
  const trace::Recording twin = other.done(), stranger = different.done();
  job::Job job = job_of(r, {0, 2, 4});
  collate::settle_host_times(job, {{&twin, &stranger}});
  const auto& records = job.classes[0].recording.records;
  EXPECT_EQ(records[0].host_ns, 400u);
  EXPECT_EQ(records[1].host_ns, 600u);
  EXPECT_EQ(records[2].host_ns, 400u);
}

// What the program's clock counted has to come out again: the mean, also where most values are
// small.
TEST(HostTimes, TimesThatTheClockCountedKeepTheirMean) {
  RecordingBuilder r;
  r.host(500).kernel(1).host(600).kernel(2);
  r.host(500).kernel(1).host(900).kernel(2);
  r.host(500).kernel(1).host(9'000'000).kernel(2);  // the clock left it as it was: something else
  r.host(800).kernel(1).host(900).kernel(2);
  job::Job job = job_of(r, {0, 2, 4, 6, 8});
  collate::settle_host_times(job, {{}}, true);
  const auto& records = job.classes[0].recording.records;
  for (std::size_t step = 0; step < 4; ++step) {
    EXPECT_EQ(records[2 * step].host_ns, 575u) << step;
    EXPECT_EQ(records[2 * step + 1].host_ns, 800u) << step;
  }
}

TEST(HostTimes, DifferentStepsAreNotChanged) {
  RecordingBuilder r;
  r.host(10).kernel(1).host(20).sync();
  r.host(30).kernel(1).host(40).kernel(2);
  job::Job job = job_of(r, {0, 2, 4});
  collate::settle_host_times(job, {{}});
  EXPECT_EQ(job.classes[0].recording.records[2].host_ns, 30u);
}

TEST(HostTimes, StepThatDoesSomethingElseIsNotMeasured) {
  RecordingBuilder r;
  for (int i = 0; i < 3; ++i) r.host(500).kernel(1).host(700).kernel(2);
  r.host(510).kernel(1).host(90'000'000).sync().host(600).kernel(2);
  r.host(505).kernel(1).host(800).kernel(2);
  job::Job job = job_of(r, {0, 2, 4, 6, 9, 11});
  collate::settle_host_times(job, {{}});
  EXPECT_EQ(job.measured, (std::vector<std::uint8_t>{1, 1, 1, 0, 1}));
  ASSERT_EQ(job.notes.size(), 1u);
  EXPECT_NE(job.notes[0].find("1 of 5 steps"), std::string::npos) << job.notes[0];
  EXPECT_EQ(job.classes[0].recording.records[9].host_ns, 500u) << "the others are still compared";
}

TEST(HostTimes, StepBeforeSomethingElseLastsUntilThen) {
  RecordingBuilder r;
  for (int i = 0; i < 4; ++i) r.host(500).kernel(1).host(700).kernel(2);
  r.host(90'000'000).sync().host(510).kernel(1).host(600).kernel(2);
  job::Job job = job_of(r, {0, 2, 4, 6, 8, 11});
  collate::settle_host_times(job, {{}});
  EXPECT_EQ(job.measured, (std::vector<std::uint8_t>{1, 1, 1, 0, 0}));
}

TEST(HostTimes, StepThatOnlyWaitsOnceMoreIsMeasured) {
  RecordingBuilder r;
  for (int i = 0; i < 3; ++i) r.host(500).kernel(1).host(700).kernel(2);
  r.host(900).sync().host(510).kernel(1).host(600).kernel(2);
  job::Job job = job_of(r, {0, 2, 4, 6, 9});
  collate::settle_host_times(job, {{}});
  EXPECT_EQ(job.measured, (std::vector<std::uint8_t>{1, 1, 1, 1}));
  EXPECT_TRUE(job.notes.empty());
}

TEST(HostTimes, SingleStepIsCorrectedByItsOwnRepetitions) {
  RecordingBuilder r;
  constexpr std::uint32_t layers = 40, calls = 3;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    r.host(layer % 4 == 0 ? 9000 : 500).kernel(1).host(700).kernel(2).host(300).kernel(3);
  r.host(20000).kernel(7);  // occurs once, so there is nothing to compare it with
  job::Job job = job_of(r, {0, layers * calls + 1});
  collate::settle_host_times(job, {{}});
  const auto& records = job.classes[0].recording.records;
  // From the fourth layer on the eight calls before are the same; the last has another call after
  // it.
  for (std::uint32_t layer = 4; layer + 1 < layers; ++layer) {
    EXPECT_EQ(records[layer * calls].host_ns, 500u) << layer;
    EXPECT_EQ(records[layer * calls + 1].host_ns, 700u) << layer;
  }
  EXPECT_EQ(records[0].host_ns, 9000u);
  EXPECT_EQ(records[layers * calls].host_ns, 20000u);
}

}  // namespace
}  // namespace maya
