#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "maya/assumed.h"
#include "maya/report.h"
#include "report/advice.h"
#include "report/assumptions.h"
#include "report/format.h"
#include "report/memory.h"
#include "report/sample_job.h"

namespace maya::report {
namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

// Compares with a file of golden/. MAYA_UPDATE_GOLDEN=1 writes the file instead.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(MAYA_SOURCE_DIR) + "/src/report/golden/" + name;
  if (std::getenv("MAYA_UPDATE_GOLDEN")) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ostringstream expected;
  expected << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(text, expected.str()) << path << " (MAYA_UPDATE_GOLDEN=1 accepts the change)";
}

TEST(Prediction, HasStepCostFlopsAndMfu) {
  const Prediction p = sample::prediction();
  ASSERT_TRUE(p.step);
  EXPECT_DOUBLE_EQ(p.step->ms, 10);
  EXPECT_EQ(p.step->count, 2U);  // three were detected, one of them is warm-up
  EXPECT_EQ(p.step->found_by, "optimizer");
  // 4 GPUs at 4 USD an hour for 10 ms.
  EXPECT_NEAR(p.cost.usd_per_step, 4 * 4.0 / 3600 * 0.010, 1e-12);
  // Two GEMMs of 2mnk and causal attention on each of four ranks.
  const double gemms = 2 * 2.0 * 4096 * 16384 * 4096;
  EXPECT_GT(p.flops_per_step, 4 * gemms);
  EXPECT_LT(p.flops_per_step, 4 * 1.2 * gemms);
  ASSERT_TRUE(p.mfu);
  EXPECT_NEAR(*p.mfu, p.flops_per_step / (4 * 0.010 * 989e12), 1e-12);
  EXPECT_EQ(p.mfu_dtype, "bf16");
}

TEST(Prediction, TokensAreTheRowsOfTheLossOverAllRanks) {
  const Prediction p = sample::prediction();
  ASSERT_TRUE(p.throughput);
  EXPECT_EQ(p.throughput->unit, "tokens");
  EXPECT_DOUBLE_EQ(p.throughput->per_step, 4 * 4096);
  EXPECT_DOUBLE_EQ(p.throughput->per_second, 4 * 4096 / 0.010);
}

TEST(Prediction, TensorParallelRanksShareTheirTokens) {
  job::Job job = sample::job();
  for (job::RankClass& rank_class : job.classes)  // an all-reduce of activations after attention
    for (std::uint32_t begin : rank_class.step_begin)
      if (begin < rank_class.recording.records.size()) {
        auto& records = rank_class.recording.records;
        std::swap(records[begin + 3], records[begin + 5]);
      }
  const sample::Estimator estimator;
  const sample::Network network;
  const Prediction p = predict(job, sample::timeline(), {estimator, network}, sample::cluster());
  ASSERT_TRUE(p.throughput);
  EXPECT_DOUBLE_EQ(p.throughput->per_step, 4096);
}

TEST(Prediction, PartsAddUpToTheStepIfRanksWaitForEachOther) {
  simulate::Timeline timeline = sample::timeline();
  timeline.breakdown[0].exposed_communication_ns += 7e6;  // ahead, and waiting for the other class
  timeline.breakdown[0].communication_ns += 7e6;
  timeline.breakdown[1].idle_ns = 0;  // late, with less to do
  const sample::Estimator estimator;
  const sample::Network network;
  const BreakdownMs b =
      predict(sample::job(), timeline, {estimator, network}, sample::cluster()).breakdown;
  EXPECT_NEAR(b.compute + b.exposed_communication + b.copy + b.idle, 10, 1e-9);
  EXPECT_NEAR(b.compute, 8.6, 1e-9);
  EXPECT_NEAR(b.communication, 4.0, 1e-9);
}

TEST(Prediction, CoverageSharesSumToOne) {
  const Coverage c = sample::prediction().coverage;
  EXPECT_NEAR(c.measured + c.fitted + c.first_principles + c.unknown, 1, 1e-12);
  // Per step: 6 ms measured, 2.5 fitted, 4.1 first principles, 0.2 unknown.
  EXPECT_NEAR(c.measured, 6 / 12.8, 1e-9);
  EXPECT_NEAR(c.unknown, 0.2 / 12.8, 1e-9);
  ASSERT_EQ(c.unknown_kernels.size(), 1U);
  EXPECT_EQ(c.unknown_kernels[0].name, "my_kernel<float>");
  EXPECT_EQ(c.unknown_kernels[0].count, 2U * 4U);
  ASSERT_EQ(c.unimplemented_calls.size(), 1U);
  EXPECT_EQ(c.unimplemented_calls[0].count, 8U);
}

TEST(Prediction, LargestCostsAreOnTheCriticalPath) {
  const auto costs = sample::prediction().largest_costs;
  ASSERT_EQ(costs.size(), 3U);
  EXPECT_EQ(costs[0].what, "all_reduce over 4 ranks");
  EXPECT_DOUBLE_EQ(costs[0].ms, 4);
  EXPECT_EQ(costs[1].what, "gemm bf16");
  for (const LargestCost& cost : costs) EXPECT_FALSE(cost.help.empty());
}

TEST(Prediction, LargestHiddenWorkIsListedToo) {
  simulate::Timeline timeline = sample::timeline();
  // The path is of a step longer than the middle one, which is the one reported: 10 ms.
  timeline.critical_path = {{simulate::CriticalLink::What::host, 0, 20, 0, 0, 12'000'000}};
  const sample::Estimator estimator;
  const sample::Network network;
  const auto costs =
      predict(sample::job(), timeline, {estimator, network}, sample::cluster()).largest_costs;
  ASSERT_EQ(costs.size(), 3U);
  EXPECT_EQ(costs[0].what, "host: work on the CPU");
  EXPECT_DOUBLE_EQ(costs[0].ms, 10);
  EXPECT_DOUBLE_EQ(costs[0].share, 1);
  EXPECT_EQ(costs[1].what, "gemm bf16, hidden");
  EXPECT_DOUBLE_EQ(costs[1].ms, 6);
}

// A step copies its batch from pageable memory, and 200 times as much of activations from pinned.
TEST(Prediction, AdviceIsAboutTheCostliestOfAFamily) {
  job::Job job = sample::job();
  trace::Recording& recording = job.classes[0].recording;
  const auto first = static_cast<std::uint32_t>(recording.ops.size());
  recording.ops.push_back({Copy{1 << 28, CopyDirection::host_to_device, true}, "activations"});
  recording.ops.push_back({Copy{1 << 20, CopyDirection::host_to_device, false}, "batch"});
  simulate::Timeline timeline = sample::timeline();
  timeline.critical_path.clear();
  const std::vector<OpUse> uses{{.rank_class = 0, .op = first, .count = 1, .ns = 5e6},
                                {.rank_class = 0, .op = first + 1, .count = 1, .ns = 1e5}};
  const auto costs = largest_costs(job, timeline, sample::cluster(), uses, {});
  ASSERT_FALSE(costs.empty());
  EXPECT_EQ(costs[0].what, "copy host_to_device");
  EXPECT_EQ(costs[0].help, "overlap it: a side stream, prefetching");
}

TEST(Prediction, ShortHostTimesAreLaunchesAndLongOnesAreCpuWork) {
  simulate::Timeline timeline = sample::timeline();
  timeline.critical_path.clear();
  for (std::int64_t k = 0; k < 200; ++k)
    timeline.critical_path.push_back(
        {simulate::CriticalLink::What::host, 0, 20, 0, k * 50'000, (k + 1) * 50'000});
  const sample::Estimator estimator;
  const sample::Network network;
  const Prediction p = predict(sample::job(), timeline, {estimator, network}, sample::cluster());
  EXPECT_EQ(p.largest_costs[0].what, "host: launching kernels");
  ASSERT_FALSE(p.assumptions.empty());
  EXPECT_DOUBLE_EQ(*p.assumptions[0].share, 1) << "all of the step is host time";
}

// How often L-BFGS evaluates the model depends on values that nobody computed.
TEST(Prediction, StepsOfLbfgsAreSaidToAssumeOneEvaluation) {
  const sample::Estimator estimator;
  const sample::Network network;
  auto assumed = [&](const char* optimizer) {
    job::Job job = sample::job();
    trace::Recording& recording = job.classes[0].recording;
    trace::Record update{};
    update.kind = trace::Kind::step_boundary;
    update.value = static_cast<std::uint32_t>(recording.strings.size());
    recording.strings.emplace_back(optimizer);
    recording.records.push_back(update);
    ++job.classes[0].step_begin.back();
    const Prediction p = predict(job, sample::timeline(), {estimator, network}, sample::cluster());
    return std::any_of(p.assumptions.begin(), p.assumptions.end(), [](const Assumption& a) {
      return a.what.starts_with("L-BFGS evaluates the model once");
    });
  };
  EXPECT_TRUE(assumed("optimizer LBFGS 1"));
  EXPECT_FALSE(assumed("optimizer Adam 1"));
}

TEST(Prediction, KernelsWhoseSizesWereNotReadAreAnAssumption) {
  Op op;
  op.work = Attention{};
  op.name = "flash_fwd_kernel";
  EXPECT_EQ(assumption_about(op), "");
  op.name += sizes_assumed;
  EXPECT_NE(assumption_about(op).find("unknown lengths"), std::string::npos);
  op.work = Gemm{};
  EXPECT_NE(assumption_about(op).find("could not be read"), std::string::npos);
}

TEST(Prediction, ExpertsThatNobodyChoseAreAnAssumption) {
  Op op;
  Gemm work;
  work.m = 64, work.n = 1536, work.k = 2048, work.groups = 30, work.experts = 128;
  op.work = work;
  EXPECT_NE(assumption_about(op).find("equally likely"), std::string::npos);
  work.dealt = true;
  op.work = work;
  EXPECT_EQ(assumption_about(op), "");
  op.work = Gemm{};
  EXPECT_EQ(assumption_about(op), "");
}

TEST(Prediction, WaitingForRanksIsSeparateFromTransfers) {
  simulate::Timeline timeline = sample::timeline();
  timeline.breakdown[0].collective_wait_ns = timeline.breakdown[0].exposed_communication_ns;
  const sample::Estimator estimator;
  const sample::Network network;
  const Prediction p = predict(sample::job(), timeline, {estimator, network}, sample::cluster());
  EXPECT_GT(p.breakdown.waiting, 0);
  EXPECT_LE(p.breakdown.waiting, p.breakdown.exposed_communication);
  EXPECT_EQ(p.breakdown.pipeline_bubble, 0);
}

TEST(Memory, PeakIsTheMaximumOfLiveMemory) {
  const Prediction p = sample::prediction();
  ASSERT_EQ(p.memory.size(), 4U);
  EXPECT_EQ(p.memory[0].reserved_bytes, 42 * gib);
  EXPECT_EQ(p.memory[0].peak_bytes, 42 * gib + gib / 2);
  EXPECT_EQ(p.memory[0].capacity_bytes, 79 * gib + gib / 2);
  EXPECT_EQ(p.memory[3].reserved_bytes, 62 * gib);
  EXPECT_FALSE(p.out_of_memory);
}

TEST(Memory, SmallerGpuRunsOutOfMemory) {
  catalog::Cluster small = sample::cluster();
  small.gpu.name = "a100-40gb-sxm";
  small.gpu.memory_bytes = 40 * gib;
  const sample::Estimator estimator;
  const sample::Network network;
  const Prediction p = predict(sample::job(), sample::timeline(), {estimator, network}, small);
  ASSERT_TRUE(p.out_of_memory);
  EXPECT_FALSE(p.out_of_memory->during_run);
  EXPECT_EQ(p.out_of_memory->capacity_bytes, 40 * gib);
}

void append(trace::Recording& recording, trace::Kind kind, std::uint64_t bytes) {
  trace::Wide wide;
  wide.y = bytes;
  recording.records.push_back(std::bit_cast<trace::Record>(wide));
  trace::Record record;
  record.kind = kind;
  record.value = 9;
  recording.records.push_back(record);
}

TEST(Memory, FailedAllocationThatSucceedsLaterIsRecovered) {
  trace::Recording recording;
  append(recording, trace::Kind::out_of_memory, 3 * gib);
  EXPECT_TRUE(memory_use(recording).refusal);
  append(recording, trace::Kind::allocate, 3 * gib);
  EXPECT_FALSE(memory_use(recording).refusal);
  EXPECT_EQ(memory_use(recording).recovered, 1U);
}

TEST(Memory, RunThatEndsOutOfMemoryHasNoStep) {
  job::Job job = sample::job();
  job.found_by = job::StepsFoundBy::whole_run;
  append(job.classes[1].recording, trace::Kind::out_of_memory, 30 * gib);
  const sample::Estimator estimator;
  const sample::Network network;
  const Prediction p = predict(job, sample::timeline(), {estimator, network}, sample::cluster());
  EXPECT_FALSE(p.step);
  ASSERT_TRUE(p.out_of_memory);
  EXPECT_EQ(p.out_of_memory->rank, 3);
  EXPECT_EQ(p.out_of_memory->requested_bytes, 30 * gib);
  EXPECT_EQ(p.out_of_memory->in_use_bytes, 60 * gib + gib / 2);
  expect_golden("summary_out_of_memory.txt", summary(p));
}

TEST(Json, MatchesGoldenAndParsesBack) {
  Prediction p = sample::prediction();
  expect_golden("prediction.json", to_json(p));
  p.settings = {{"communication", "0"}, {"network.nic_gbps", "200"}};
  const std::string text = to_json(p);
  const auto again = from_json(text, "golden");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), text);
}

TEST(Json, InvalidUtf8InKernelNamesIsReplaced) {
  Prediction p = sample::prediction();
  p.coverage.unknown_kernels[0].name = "bad \xff\xfe name\n\"";
  EXPECT_FALSE(nlohmann::json::parse(to_json(p), nullptr, false).is_discarded());
}

TEST(Json, ErrorsNameTheFile) {
  EXPECT_NE(from_json("{", "x.json").error().message.find("x.json is not a prediction"),
            std::string::npos);
  EXPECT_NE(from_json("{\"version\": 2}", "x.json").error().message.find("version 2"),
            std::string::npos);
  EXPECT_NE(from_json("{\"version\": 1}", "x.json").error().message.find("world_size"),
            std::string::npos);
}

TEST(Json, NumbersThatDoNotFitAreErrors) {
  const std::string text = to_json(Prediction{});
  ASSERT_TRUE(from_json(text, "x.json"));
  for (const char* number : {"99999999999999999999999999", "1e300", "1.5", "4294967296", "-1e99"}) {
    std::string other = text;
    const std::string field = "\"world_size\": ";
    other.replace(other.find(field) + field.size(), 1, number);
    const auto read = from_json(other, "x.json");
    ASSERT_FALSE(read) << number;
    EXPECT_NE(read.error().message.find("x.json"), std::string::npos);
  }
}

TEST(Summary, Golden) {
  const std::string text = summary(sample::prediction());
  expect_golden("summary.txt", text);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  Style ascii;
  ascii.unicode = false;
  for (unsigned char c : summary(sample::prediction(), ascii)) EXPECT_LT(c, 128);
}

TEST(Summary, HasAtMostFortyLines) {
  Prediction p = sample::prediction();
  p.notes.assign(30, "something to know");
  p.memory.clear();
  for (int rank = 0; rank < 64; ++rank)
    p.memory.push_back({rank, rank * gib, rank * gib, 0, 0, 80 * gib});
  const std::string text = summary(p);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
}

TEST(Comparison, Golden) {
  Prediction other = sample::prediction();
  other.cluster = "dgx-a100:1";
  other.step->ms *= 2;
  other.settings = {{"network.nic_gbps", "200"}};
  expect_golden("comparison.txt",
                comparison({{"runs/a", sample::prediction()}, {"runs/b", other}}));
}

TEST(Format, FormatsNumbersForPeople) {
  EXPECT_EQ(human_ms(138.24), "138.2 ms");
  EXPECT_EQ(human_ms(0.085), "85.0 us");
  EXPECT_EQ(human_ms(12'400), "12.4 s");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_count(1234567), "1,234,567");
  EXPECT_EQ(human_usd(0.0012), "$0.0012");
  EXPECT_EQ(percent(0.0001), "<0.1 %");
  EXPECT_EQ(rank_list({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(fit("überlang", 6), "über..");
  EXPECT_EQ(wrap("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("", 8), (std::vector<std::string>{""}));
}

}  // namespace
}  // namespace maya::report
