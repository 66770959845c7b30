#include "predict/predict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "predict/fit.h"
#include "predict/run_directory.h"
#include "predict/sample_run.h"
#include "predict/scaled.h"
#include "predict/settings.h"

namespace maya::predict {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "maya-predict-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
  }
  std::string path;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Settings, SeparatesWhatIfsFromKeysOfTheCluster) {
  const auto settings = parse_settings({{"communication", "0"},
                                        {"scale.gemm", "0.5"},
                                        {"scale.all_reduce", "2"},
                                        {"tokens_per_step", "4096"},
                                        {"network.nic_gbps", "200"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->communication, 0);
  EXPECT_EQ(settings->factor(Work(Gemm{})), 0.5);
  EXPECT_EQ(settings->factor(Work(Attention{})), 1);
  EXPECT_EQ(settings->factor(Work(Collective{})), 2);  // all_reduce is the default kind
  ASSERT_TRUE(settings->units);
  EXPECT_EQ(settings->units->unit, "tokens");
  EXPECT_EQ(settings->cluster, (Pairs{{"network.nic_gbps", "200"}}));
}

TEST(Settings, ErrorsNameTheWrongSetting) {
  EXPECT_TRUE(
      contains(parse_settings({{"scale.gem", "0.5"}}).error().message, "did you mean gemm"));
  EXPECT_TRUE(
      contains(parse_settings({{"communication", "-1"}}).error().message, "communication=-1"));
  EXPECT_TRUE(
      contains(parse_settings({{"scale.gemm", "fast"}}).error().message, "expected a number"));
  EXPECT_FALSE(split_setting("novalue"));
  EXPECT_FALSE(split_setting("=3"));
  EXPECT_FALSE(split_setting("key="));
  EXPECT_EQ(split_setting("a=b=c")->second, "b=c");
}

TEST(RunDirectory, ErrorsNameTheWrongFile) {
  EXPECT_TRUE(contains(read_run("/nowhere/at/all").error().message, "no such run directory"));
  const Folder folder;
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "no recording (rank-N.maya)"));
  folder.write("rank-0.maya", "this is no recording at all, but it has some bytes in it");
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "rank-0.maya"));
  folder.write("run.toml", "version = 1\ncluster = \n");
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "run.toml:2"));
  folder.write("run.toml", "version = 7\n");
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "version 7 is newer"));
}

TEST(WriteFile, NamesTheFileItCannotWrite) {
  const Status status = write_file("/nowhere/at/all.json", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(contains(status.error().message, "/nowhere/at/all.json"));
}

class EndToEnd : public testing::Test {
 protected:
  void SetUp() override { sample::write_run(folder.path, {}); }
  Outcome predicted(const Options& options = {}) {
    auto outcome = predict_run(folder.path, options);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? std::move(*outcome) : Outcome{};
  }
  std::string refused(const Options& options = {}) {
    auto outcome = predict_run(folder.path, options);
    EXPECT_FALSE(outcome);
    return outcome ? "" : outcome.error().message;
  }
  Folder folder;
};

TEST_F(EndToEnd, PredictsAStep) {
  const Outcome outcome = predicted();
  const report::Prediction& p = outcome.prediction;
  ASSERT_TRUE(p.step);
  EXPECT_GT(p.step->ms, 1);
  EXPECT_LE(p.step->low_ms, p.step->ms);
  EXPECT_GE(p.step->high_ms, p.step->ms);
  EXPECT_GE(p.step->count, 3U);
  EXPECT_EQ(p.world_size, 4);
  EXPECT_EQ(p.rank_classes, 1);
  EXPECT_EQ(p.command, "torchrun train.py");
  EXPECT_EQ(p.memory.size(), 4U);
  ASSERT_TRUE(p.throughput);
  EXPECT_DOUBLE_EQ(p.throughput->per_step, 4 * 4 * 1024);
  const report::BreakdownMs& b = p.breakdown;
  EXPECT_NEAR(b.compute + b.exposed_communication + b.copy + b.idle, p.step->ms, 0.02 * p.step->ms);
}

// The report and the timeline use the same cost of an op.
TEST_F(EndToEnd, TimesOfOpsAddUpToTheBusyTimeOfTheGpu) {
  sample::Shape alone;
  alone.ranks = 1;
  const Folder own;
  sample::write_run(own.path, alone);
  Options options;
  options.keep_spans = true;
  const auto outcome = predict_run(own.path, options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  const report::Prediction& p = outcome->prediction;
  double sum = 0, products = 0;
  for (const report::OpCost& op : p.ops) {
    sum += op.ms;
    if (op.kind == "gemm") products += op.ms;
  }
  EXPECT_GT(products, 0.2 * sum);
  EXPECT_NEAR(sum, p.breakdown.compute + p.breakdown.copy, 1e-3 * sum);
}

TEST_F(EndToEnd, PredictionIsDeterministic) {
  EXPECT_EQ(report::to_json(predicted().prediction), report::to_json(predicted().prediction));
}

TEST_F(EndToEnd, FoldedEqualsUnfolded) {
  Options unfolded;
  unfolded.fold = false;
  const Outcome one = predicted(), each = predicted(unfolded);
  EXPECT_EQ(each.prediction.rank_classes, 4);
  EXPECT_DOUBLE_EQ(one.prediction.step->ms, each.prediction.step->ms);
}

TEST_F(EndToEnd, WhatIfsChangeTheStep) {
  const Outcome base = predicted();
  Options free;
  free.settings = {{"communication", "0"}};
  const Outcome without = predicted(free);
  EXPECT_LE(without.prediction.step->ms, base.prediction.step->ms);
  EXPECT_LT(without.prediction.breakdown.exposed_communication, 0.01);
  Options faster;
  faster.settings = {{"scale.gemm", "0.5"}};
  EXPECT_LT(predicted(faster).prediction.step->ms, 0.8 * base.prediction.step->ms);
  Options other;
  other.cluster = "dgx-a100:1";
  EXPECT_GT(predicted(other).prediction.step->ms, base.prediction.step->ms);
}

TEST_F(EndToEnd, WritesItsResults) {
  Options options;
  options.keep_spans = true;
  const Outcome outcome = predicted(options);
  ASSERT_TRUE(write_results(folder.path, outcome));
  for (const char* name : {"prediction.json", "timeline.pftrace", "report.html"})
    EXPECT_GT(fs::file_size(folder.path + "/" + name), 1000U) << name;
  const auto text = read_file(folder.path + "/prediction.json");
  ASSERT_TRUE(text);
  EXPECT_TRUE(report::from_json(*text, "prediction.json"));
}

TEST_F(EndToEnd, WhatAClientOfAnEngineSawBelongsToItsCluster) {
  folder.write("serving.json", R"({"loads": [{"output_tokens_per_second": 1000.0}]})");
  const std::string text = to_json(predicted());
  EXPECT_TRUE(contains(text, "\"serving\"") && contains(text, "usd_per_million_output_tokens"));
  Options other;
  other.cluster = "dgx-a100:1";
  EXPECT_TRUE(predicted(other).serving.empty());
  // An engine kills its processes at its end, and its command is what the user asked for.
  auto cut = trace::read(folder.path + "/rank-0.maya");
  ASSERT_TRUE(cut);
  cut->complete = false;
  cut->records.resize(cut->records.size() / 8);
  sample::write_recording(folder.path + "/rank-0.maya", *cut);
  EXPECT_TRUE(contains(predicted().prediction.no_step, "Killed"));
  folder.write("serving.json", R"({"loads": [{"completed": 3}]})");
  folder.write("run.toml",
               "version = 1\ncluster = \"dgx-h100\"\ncommand = [\"python3\", \"-m\", "
               "\"maya.serve_bench.inside\", \"plan.json\", \"vllm\", \"serve\", "
               "\"--token=abc\", \"m\"]\n");
  EXPECT_TRUE(contains(predicted().prediction.no_step, "A serving engine"));
  EXPECT_EQ(predicted().prediction.command, "vllm serve --token=*** m");
  folder.write("serving.json", R"({"loads": [{"completed": 0}]})");
  EXPECT_TRUE(contains(predicted().prediction.no_step, "Killed"));
  // Nesting that would take the whole stack when it is printed.
  folder.write("serving.json",
               "{\"loads\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}");
  EXPECT_TRUE(predicted().serving.empty());
  folder.write("serving.json", "[1, 2");
  const Outcome damaged = predicted();
  EXPECT_TRUE(damaged.serving.empty());
  EXPECT_TRUE(contains(damaged.prediction.notes.back(), "serving.json"));
}

TEST_F(EndToEnd, AWorkerThatItsCommandEndedWasNotCutOff) {
  auto cut = trace::read(folder.path + "/rank-0.maya");
  ASSERT_TRUE(cut);
  const std::string process = std::to_string(cut->identity.pid);
  cut->complete = false;
  sample::write_recording(folder.path + "/rank-0.maya", *cut);
  auto run = read_run(folder.path);
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_FALSE(run->recordings[0].complete);
  folder.write("ended.txt", "17\n" + process + "\n");
  run = read_run(folder.path);
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->recordings[0].complete);
}

TEST_F(EndToEnd, UnsuitableClustersAreRejected) {
  Options small;
  small.cluster = "a100-80gb-sxm";
  EXPECT_TRUE(contains(refused(small), "has 4 ranks but a100-80gb-sxm has 1 GPU"));
  Options unknown;
  unknown.cluster = "dgx-h10";
  EXPECT_TRUE(contains(refused(unknown), "dgx-h100"));
  Options bad_key;
  bad_key.settings = {{"network.nic_gpbs", "200"}};
  EXPECT_TRUE(contains(refused(bad_key), "nic_gpbs"));
}

TEST_F(EndToEnd, ErrorNamesTheDamagedRecording) {
  const std::string path = folder.path + "/rank-2.maya";
  const auto bytes = read_file(path);
  ASSERT_TRUE(bytes);
  std::string broken = *bytes;
  for (std::size_t i = broken.size() / 2; i < broken.size() / 2 + 8; ++i) broken[i] ^= 0x5a;
  ASSERT_TRUE(write_file(path, broken));
  EXPECT_TRUE(contains(refused(), "rank-2.maya"));
}

TEST_F(EndToEnd, RecordingsOfDifferentJobsAreRejected) {
  sample::Shape other;
  other.ranks = 8;
  sample::write_recording(folder.path + "/rank-1.maya", sample::recording(1, other));
  EXPECT_FALSE(refused().empty());
  sample::write_recording(folder.path + "/rank-1.maya", sample::recording(0, {}));
  EXPECT_TRUE(contains(refused(), "rank-1.maya says it is rank 0"));
}

TEST_F(EndToEnd, OutOfMemoryIsAResult) {
  // Rank 1 runs out of memory in the middle of its second step and ends; the others wait for it.
  trace::Recording cut = sample::recording(1, {});
  cut.records.resize(cut.records.size() / 4);
  trace::Wide wide;
  wide.y = std::uint64_t{90} << 30;
  trace::Record refusal;
  refusal.kind = trace::Kind::out_of_memory;
  cut.records.push_back(std::bit_cast<trace::Record>(wide));
  cut.records.push_back(refusal);
  sample::write_recording(folder.path + "/rank-1.maya", cut);
  const Outcome outcome = predicted();
  ASSERT_TRUE(outcome.prediction.out_of_memory);
  EXPECT_EQ(outcome.prediction.out_of_memory->rank, 1);
  EXPECT_EQ(outcome.prediction.out_of_memory->requested_bytes, std::int64_t{90} << 30);
  EXPECT_EQ(outcome.prediction.memory.size(), 4U);
}

TEST_F(EndToEnd, FailureOfTheCommandIsReported) {
  auto failed = [](const std::string& note) {
    return contains(note, "Failed: the command ended with code 3") && contains(note, "measured");
  };
  auto notes = predicted().prediction.notes;
  EXPECT_TRUE(std::none_of(notes.begin(), notes.end(), failed));
  std::ofstream(folder.path + "/run.toml", std::ios::app) << "exit_code = 3\n";
  notes = predicted().prediction.notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), failed));
}

TEST_F(EndToEnd, ARunWithoutWorkHasNoStep) {
  sample::Shape idle;
  idle.train = false;
  const Folder empty;
  sample::write_run(empty.path, idle);
  const auto outcome = predict_run(empty.path);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_FALSE(outcome->prediction.step);
  EXPECT_EQ(outcome->prediction.memory.size(), 4U);
  EXPECT_TRUE(contains(outcome->prediction.no_step, "put no work on the GPU"));
}

TEST_F(EndToEnd, ProcessWithoutARankIsRankZero) {
  sample::Shape alone;
  alone.ranks = 1;
  const Folder left;
  sample::write_recording(left.path + "/process-4711.maya", sample::recording(0, alone));
  Options options;
  options.cluster = "dgx-h100";
  const auto outcome = predict_run(left.path, options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->prediction.step);
  // A second process did nothing. The first one is used, and a note names it.
  alone.train = false;
  sample::write_recording(left.path + "/process-12.maya", sample::recording(0, alone));
  const auto two = predict_run(left.path, options);
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(two->prediction.step->ms, outcome->prediction.step->ms);
  bool noted = false;
  for (const std::string& note : two->prediction.notes)
    noted |= contains(note, "process-4711.maya");
  EXPECT_TRUE(noted);
}

TEST(Fit, FindsTheMicroBatchInTheCommand) {
  auto doubled = [](const std::string& command) {
    const auto word = batch_word(command);
    return word ? word->in(command, 2 * word->value) : "none";
  };
  EXPECT_EQ(doubled("torchrun train.py --batch 16 --lr 1"), "torchrun train.py --batch 32 --lr 1");
  EXPECT_EQ(doubled("python t.py --micro-batch-size=4"), "python t.py --micro-batch-size=8");
  EXPECT_EQ(doubled("t --per_device_train_batch_size 8"), "t --per_device_train_batch_size 16");
  for (const char* other : {"python t.py", "t --batch", "t --batch x", "t --batch 0", "t batch 4",
                            "t --global-batch-size 4", "t --batch 4x", ""})
    EXPECT_EQ(doubled(other), "none") << other;
}

}  // namespace
}  // namespace maya::predict
