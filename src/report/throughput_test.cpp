#include "report/throughput.h"

#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"
#include "report/passes.h"
#include "report/serialization.h"

namespace maya::report {
namespace {

using testing::RecordingBuilder;

constexpr std::uint16_t program = 1, autograd = 2;
constexpr std::int64_t vocabulary = 32000, width = 512;

void launch(RecordingBuilder& r, const Work& work, const std::string& name = "kernel") {
  r.add(trace::Kind::launch, r.op({work, name}));
}

Gemm product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Gemm gemm;
  gemm.m = m, gemm.n = n, gemm.k = k;
  return gemm;
}

// One step of the recording, as the only measured one of its class.
void measure(job::Job& job, RecordingBuilder& r, std::vector<std::int32_t> ranks) {
  job::RankClass rank_class;
  rank_class.representative = ranks[0];
  job.world_size += static_cast<std::int32_t>(ranks.size());
  rank_class.ranks = std::move(ranks);
  rank_class.step_begin = {0, static_cast<std::uint32_t>(r.recording().records.size())};
  rank_class.recording = r.done();
  job.classes.push_back(std::move(rank_class));
  job.measured = {1};
}

job::Job empty_job() {
  job::Job job;
  job.world_size = 0;
  return job;
}

struct Model {
  bool looks_up{true}, has_output{true}, trains{true};
  bool compiled{};
  int layers{4};
  std::int64_t words{vocabulary};
};

void micro_batch(RecordingBuilder& r, std::int64_t tokens, const Model& model = {},
                 std::uint16_t reduce_over = UINT16_MAX) {
  r.thread(program);
  if (model.looks_up && model.compiled)
    launch(r, TritonKernel{}, "triton_poi_fused_embedding_0");
  else if (model.looks_up)
    launch(r, Gather{tokens, 2 * width, vocabulary, DType::u8}, "vectorized_gather_kernel");
  for (int l = 0; l < model.layers; ++l) {
    launch(r, product(4 * width, tokens, width));
    launch(r, product(width, tokens, 4 * width));
    if (reduce_over != UINT16_MAX) r.collective(reduce_over, 2 * width * tokens);
  }
  if (model.has_output) launch(r, product(model.words, tokens, width));
  if (!model.trains) return;
  r.thread(autograd);
  if (model.has_output) {
    launch(r, product(width, tokens, model.words));
    launch(r, product(width, model.words, tokens));
  }
  for (int l = 0; l < model.layers; ++l) launch(r, product(4 * width, tokens, width));
  r.thread(program);
}

Throughput found(const job::Job& job) {
  auto result = throughput_of(job, 1000);
  EXPECT_TRUE(result);
  return result ? *result : Throughput{};
}

TEST(Throughput, NodesOfAGraphAreNoTokens) {
  constexpr std::int64_t nodes = 12800, edges = 64000, graphs = 64;
  RecordingBuilder r(0, 1);
  r.thread(program);
  launch(r, product(width, nodes, 64));
  launch(r, Gather{edges, width, nodes, DType::f32}, "index_select");
  Softmax loss;
  loss.log = true, loss.rows = graphs, loss.cols = 10;
  launch(r, loss);
  r.thread(autograd);
  launch(r, product(width, 64, nodes));  // the gradient of the weights
  job::Job job = empty_job();
  measure(job, r, {0});
  const auto found = throughput_of(job, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unit, "samples");
  EXPECT_EQ(found->per_step, graphs);
}

TEST(Throughput, TokensOfALanguageModelOverItsMicroBatchesAndRanks) {
  job::Job job = empty_job();
  RecordingBuilder r;
  for (int micro = 0; micro < 3; ++micro) micro_batch(r, 2048);
  measure(job, r, {0, 1, 2, 3});
  const Throughput t = found(job);
  EXPECT_EQ(t.unit, "tokens");
  EXPECT_EQ(t.found_by, "input");
  EXPECT_DOUBLE_EQ(t.per_step, 3 * 2048 * 4);
  EXPECT_DOUBLE_EQ(t.per_second, t.per_step);
}

TEST(Throughput, CompiledModelWithAFusedLookup) {
  job::Job job = empty_job();
  RecordingBuilder r;
  Model model;
  model.compiled = true;
  for (int micro = 0; micro < 2; ++micro) micro_batch(r, 1024, model);
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "tokens");
  EXPECT_DOUBLE_EQ(found(job).per_step, 2 * 1024);
}

TEST(Throughput, CompiledModelWithAVocabularyOfCharacters) {
  job::Job job = empty_job();
  RecordingBuilder r;
  Model model;
  model.compiled = true;
  model.words = 65;
  for (int micro = 0; micro < 2; ++micro) micro_batch(r, 1024, model);
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "tokens");
  EXPECT_DOUBLE_EQ(found(job).per_step, 2 * 1024);
}

// Gates of a few columns in some layers are rare products too.
TEST(Throughput, CompiledModelWithASmallVocabularyAndGates) {
  job::Job job = empty_job();
  RecordingBuilder r;
  Model model;
  model.compiled = true;
  model.words = 65;
  for (int micro = 0; micro < 2; ++micro) {
    micro_batch(r, 1024, model);
    for (int gate = 0; gate < 2; ++gate) {
      launch(r, product(2, 1024, 12));
      r.thread(autograd);
      launch(r, product(12, 1024, 2));
      r.thread(program);
    }
    launch(r, product(1, 1020, 24));  // and one that leaves out the first words
    r.thread(autograd);
    launch(r, product(24, 1020, 1));
  }
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "tokens");
  EXPECT_DOUBLE_EQ(found(job).per_step, 2 * 1024);
}

TEST(Throughput, RanksThatReduceActivationsShareTheirTokens) {
  job::Job job = empty_job();
  RecordingBuilder r;
  const std::uint16_t model = r.communicator(1, {0, 1});
  micro_batch(r, 2048, {}, model);
  measure(job, r, {0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(found(job).per_step, 2048 * 2) << "two ways of data parallelism";
}

// A loss computed in chunks reduces gradients of the output layer before the backward pass begins.
TEST(Throughput, RanksThatAverageGradientsDoNotShareTheirTokens) {
  job::Job job = empty_job();
  RecordingBuilder r;
  const std::uint16_t data = r.communicator(1, {0, 1, 2, 3});
  r.thread(program);
  launch(r, Gather{2048, 2 * width, vocabulary, DType::u8}, "vectorized_gather_kernel");
  launch(r, product(vocabulary, 2048, width));
  Collective average{CollectiveKind::reduce_scatter, std::int64_t{1} << 28};
  average.reduce = ReduceOp::other;  // NCCL's sum of scaled values
  r.add(trace::Kind::collective, r.op({average, "ncclReduceScatter"}), data);
  launch(r, product(width, 2048, vocabulary));
  measure(job, r, {0, 1, 2, 3});
  EXPECT_DOUBLE_EQ(found(job).per_step, 2048 * 4);
}

TEST(Throughput, PipelineWithLookupInTheFirstAndOutputInTheLastStage) {
  job::Job job = empty_job();
  RecordingBuilder first, last;
  micro_batch(first, 512, {.has_output = false});
  micro_batch(first, 512, {.has_output = false});
  micro_batch(last, 512, {.looks_up = false});
  micro_batch(last, 512, {.looks_up = false});
  measure(job, first, {0});
  measure(job, last, {1});
  EXPECT_DOUBLE_EQ(found(job).per_step, 1024);
}

TEST(Throughput, PassesOfAReferenceModelAreNotCounted) {
  job::Job job = empty_job();
  RecordingBuilder r;
  micro_batch(r, 1024, {.trains = false});
  micro_batch(r, 1024);
  measure(job, r, {0});
  EXPECT_DOUBLE_EQ(found(job).per_step, 1024);
}

// Preference and reinforcement training apply the output layer to the answers only.
TEST(Throughput, TrainedTokensIncludeThoseWithoutAnOutput) {
  constexpr std::int64_t tokens = 1120, answers = 656;
  job::Job job = empty_job();
  RecordingBuilder r;
  for (int micro = 0; micro < 2; ++micro) {
    r.thread(program);
    for (int pass = 0; pass < 3; ++pass) {  // a generation, the reference model, the trained one
      launch(r, Gather{tokens - (pass == 0 ? 8 : 0), 2 * width, vocabulary, DType::u8}, "gather");
      launch(r, product(vocabulary, answers, width));
    }
    r.thread(autograd);
    launch(r, product(width, answers, vocabulary));
    launch(r, product(width, vocabulary, answers));
  }
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "tokens");
  EXPECT_DOUBLE_EQ(found(job).per_step, 2 * tokens);
}

TEST(Throughput, TokensOfAModelWithARewardForEachSequence) {
  constexpr std::int64_t sequences = 8, length = 72;
  job::Job job = empty_job();
  RecordingBuilder r;
  Attention attention;
  attention.batch = sequences, attention.seq_q = attention.seq_k = length;
  for (const bool trains : {false, true}) {  // the second model is trained, the first compared with
    r.thread(program);
    launch(r, Gather{sequences * length, 2 * width, vocabulary, DType::u8}, "gather");
    attention.direction = Direction::forward;
    launch(r, attention);
    launch(r, product(1, sequences * length, width));
    if (!trains) continue;
    r.thread(autograd);
    attention.direction = Direction::backward;
    launch(r, attention);
  }
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "tokens");
  EXPECT_DOUBLE_EQ(found(job).per_step, sequences * length);
}

Convolution stem(std::int64_t n) {
  Convolution convolution;
  convolution.n = n, convolution.c = 3, convolution.h = convolution.w = 224, convolution.k = 64;
  convolution.kh = convolution.kw = 7;
  return convolution;
}

TEST(Throughput, ImagesAreTheInputOfTheFirstConvolution) {
  job::Job job = empty_job();
  RecordingBuilder r;
  r.thread(program);
  for (int micro = 0; micro < 2; ++micro) {
    launch(r, stem(16));
    CrossEntropy boxes;
    boxes.rows = 134'400;
    launch(r, boxes);
  }
  measure(job, r, {0, 1});
  EXPECT_EQ(found(job).unit, "images");
  EXPECT_DOUBLE_EQ(found(job).per_step, 2 * 16 * 2);
}

TEST(Throughput, ImagesThatAreUsedSeveralTimesCountOnce) {
  job::Job job = empty_job();
  RecordingBuilder r;
  r.thread(program).copy(16 * 3 * 224 * 224 * 4, CopyDirection::host_to_device);
  for (int network = 0; network < 3; ++network) launch(r, stem(16));  // a critic and a generator
  measure(job, r, {0});
  EXPECT_DOUBLE_EQ(found(job).per_step, 16);
}

// DataParallel: each replica's forward pass runs in a new thread, the backward passes in those of
// the autograd engine.
TEST(Throughput, ImagesOfReplicasInThreadsAreSummed) {
  job::Job job = empty_job();
  RecordingBuilder r;
  constexpr std::uint16_t replicas = 4, images = 8;
  Normalization norm;
  norm.direction = Direction::backward;
  r.thread(program).copy(replicas * images * 3 * 224 * 224 * 4, CopyDirection::host_to_device);
  for (std::uint16_t k = 0; k < replicas; ++k) {
    r.thread(10 + k);
    launch(r, stem(images));
  }
  for (std::uint16_t k = 0; k < replicas; ++k) {
    r.thread(20 + k);
    launch(r, norm);
    launch(r, stem(images));  // the gradient of a transposed convolution
  }
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "images");
  EXPECT_DOUBLE_EQ(found(job).per_step, replicas * images);
}

TEST(Throughput, PrefetchedImagesAreCounted) {
  job::Job job = empty_job();
  RecordingBuilder r;
  r.thread(program);
  std::vector<std::uint32_t> begin{0};
  for (int step = 0; step < 3; ++step) {
    launch(r, stem(16));
    if (step > 0) r.copy(16 * 3 * 224 * 224 * 4, CopyDirection::host_to_device);
    begin.push_back(static_cast<std::uint32_t>(r.recording().records.size()));
  }
  measure(job, r, {0});
  job.classes[0].step_begin = begin;
  job.measured = {1, 1, 1};
  EXPECT_DOUBLE_EQ(found(job).per_step, 16);
}

TEST(Throughput, ImageModelWithATextEncoderCountsImages) {
  job::Job job = empty_job();
  RecordingBuilder r;
  r.thread(program);
  launch(r, Gather{8 * 77, 768, 49408, DType::f32});
  launch(r, stem(8));
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "images");
  EXPECT_DOUBLE_EQ(found(job).per_step, 8);
}

TEST(Throughput, RowsOfTheLossAreSamplesOtherwise) {
  job::Job job = empty_job();
  RecordingBuilder r;
  r.thread(program);
  launch(r, product(512, 64, 784));
  Softmax softmax;
  softmax.rows = 64, softmax.cols = 10, softmax.log = true;
  launch(r, softmax);
  measure(job, r, {0});
  EXPECT_EQ(found(job).unit, "samples");
  EXPECT_DOUBLE_EQ(found(job).per_step, 64);
}

TEST(Throughput, UnknownInputHasNoThroughput) {
  job::Job job = empty_job();
  RecordingBuilder r;
  launch(r, product(512, 64, 784));
  measure(job, r, {0});
  EXPECT_FALSE(throughput_of(job, 1));
}

// A backward pass with buckets. With `at_once` the compute stream waits for each right after it was
// issued.
job::Job reductions(bool at_once, bool of_activations = false) {
  job::Job job = empty_job();
  RecordingBuilder r;
  const std::uint16_t world = r.communicator(1, {0, 1});
  constexpr std::uint16_t compute = 0, communication = 7;
  r.thread(program).on(compute);
  launch(r, product(64, 64, 64));
  if (of_activations) r.collective(world, 1 << 20);
  r.thread(autograd);
  std::uint32_t event = 0;
  for (int bucket = 0; bucket < 3; ++bucket) {
    launch(r, product(64, 64, 64));
    r.on(communication).collective(world, 1 << 20).record(event);
    r.on(compute);
    if (at_once) r.wait(event);
    ++event;
  }
  for (std::uint32_t e = 0; !at_once && e < event; ++e) r.wait(e);
  measure(job, r, {0, 1});
  return job;
}

TEST(Serialization, WaitsRightAfterEachReductionAreReported) {
  EXPECT_TRUE(serialization_of(reductions(true)).most());
  EXPECT_NE(serialization_help(reductions(true)).find("TORCH_DIST_USE_NCCL2=0"), std::string::npos);
}

TEST(Serialization, WaitsAtTheEndOfTheBackwardPassAreNotReported) {
  EXPECT_FALSE(serialization_of(reductions(false)).most());
  EXPECT_EQ(serialization_help(reductions(false)), "");
}

TEST(Serialization, WaitsOfTensorParallelRanksAreNotReported) {
  EXPECT_FALSE(serialization_of(reductions(true, true)).most());
}

TEST(Passes, DistinguishesPipelineStagesFromRings) {
  for (bool ring : {false, true}) {
    job::Job job = empty_job();
    RecordingBuilder r;
    const std::uint16_t pair = r.communicator(1, {0, 1});
    if (ring) r.send(pair, 1, 100);
    r.receive(pair, 1, 100);
    launch(r, product(64, 64, 64));
    r.send(pair, 1, 100);
    measure(job, r, {0});
    EXPECT_EQ(stages_of_pipelines(job)[0], !ring);
  }
}

// An interleaved schedule: the first rank sends the output of its first chunk and receives the
// input of its second in one batch.
TEST(Passes, StagesWithSeveralChunksAreStages) {
  job::Job job = empty_job();
  RecordingBuilder first(0, 2), last(1, 2);
  const std::uint16_t pair = first.communicator(1, {0, 1});
  launch(first, product(64, 64, 64));
  first.send(pair, 1, 100).receive(pair, 1, 100);
  launch(first, product(64, 64, 64));
  EXPECT_EQ(last.communicator(1, {0, 1}), pair);
  last.receive(pair, 0, 100);
  launch(last, product(64, 64, 64));
  last.send(pair, 0, 100);
  measure(job, first, {0});
  measure(job, last, {1});
  job.communicators.push_back({1, {0, 1}, {pair, pair}, ""});
  EXPECT_EQ(stages_of_pipelines(job), (std::vector<bool>{true, true}));
}

}  // namespace
}  // namespace maya::report
