#include "report/sample_job.h"

#include <bit>

namespace maya::report::sample {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t gib = std::int64_t{1} << 30;
enum : std::uint32_t { gemm, attention, unknown, all_reduce, adamw, copy_in, loss };

trace::Record record(trace::Kind kind, std::uint32_t value, std::uint16_t stream = 0,
                     std::uint16_t aux = 0) {
  trace::Record result;
  result.kind = kind;
  result.value = value;
  result.stream = stream;
  result.aux = aux;
  result.host_ns = 20'000;
  return result;
}

void allocate(trace::Recording& recording, std::uint32_t id, std::int64_t bytes,
              bool release = false) {
  trace::Wide wide;
  wide.y = static_cast<std::uint64_t>(bytes);
  recording.records.push_back(std::bit_cast<trace::Record>(wide));
  recording.records.push_back(record(release ? trace::Kind::release : trace::Kind::allocate, id));
}

trace::Recording recording(std::int32_t rank, std::int64_t bytes,
                           std::vector<std::uint32_t>& steps) {
  trace::Recording r;
  r.complete = true;
  r.identity.rank = rank;
  r.identity.world_size = 4;
  r.identity.gpu = "h100-sxm";
  r.identity.cluster = "dgx-h100:1";
  r.identity.command = "torchrun --nproc-per-node 4 train_gpt.py --layers 24";
  r.identity.memory_capacity = 79 * gib;
  r.identity.memory_context = gib / 2;
  r.communicators.push_back({77, rank, 4, 0, "default_pg"});
  Gemm product;
  product.m = 4096, product.n = 16384, product.k = 4096;
  product.a = product.b = product.d = product.compute = DType::bf16;
  Attention heads;
  heads.batch = 4, heads.heads = heads.kv_heads = 32, heads.seq_q = heads.seq_k = 1024;
  heads.head_dim = heads.head_dim_v = 128, heads.dtype = DType::bf16, heads.causal = true;
  Collective reduce;
  reduce.bytes = 256 << 20, reduce.dtype = DType::bf16;
  OptimizerStep update;
  update.kind = OptimizerKind::adamw, update.elements = 100'000'000, update.fused = true;
  update.bytes_read = 1'600'000'000, update.bytes_written = 1'200'000'000;
  Copy input;
  input.bytes = 64 << 10, input.direction = CopyDirection::host_to_device, input.pinned = true;
  CrossEntropy entropy;
  entropy.rows = 4096, entropy.cols = 50304, entropy.dtype = DType::bf16, entropy.fused = true;
  r.ops = {{product, "cublasGemmEx", {}},
           {heads, "flash_fwd_kernel", {}},
           {OtherKernel{3, 1 << 20}, "my_kernel<float>", {}},
           {reduce, "ncclAllReduce", {}},
           {update, "multi_tensor_apply_kernel<FusedAdam>", {}},
           {input, "cudaMemcpyAsync", {}},
           {entropy, "cross_entropy", {}}};
  r.strings = {"step"};
  r.unimplemented_calls = {{"cuFancyNewCall", 2}};

  allocate(r, 1, bytes);
  allocate(r, 2, 2 * gib);
  allocate(r, 2, 2 * gib, true);
  for (int step = 0; step < 3; ++step) {
    steps.push_back(static_cast<std::uint32_t>(r.records.size()));
    r.records.push_back(record(trace::Kind::copy, copy_in));
    r.records.push_back(record(trace::Kind::launch, gemm));
    r.records.push_back(record(trace::Kind::launch, attention));
    r.records.push_back(record(trace::Kind::launch, loss));
    r.records.push_back(record(trace::Kind::launch, unknown));
    r.records.push_back(record(trace::Kind::collective, all_reduce, 7, 0));
    r.records.push_back(record(trace::Kind::launch, gemm));
    r.records.push_back(record(trace::Kind::launch, adamw));
  }
  steps.push_back(static_cast<std::uint32_t>(r.records.size()));
  return r;
}

}  // namespace

job::Job job() {
  job::Job job;
  job.world_size = 4;
  job.classes.resize(2);
  job.classes[0].ranks = {0, 1, 2};
  job.classes[0].recording = recording(0, 40 * gib, job.classes[0].step_begin);
  job.classes[1].ranks = {3};
  job.classes[1].recording = recording(3, 60 * gib, job.classes[1].step_begin);
  job.class_of_rank = {0, 0, 0, 1};
  job.communicators.resize(1);
  job.communicators[0].id = 77;
  job.communicators[0].ranks = {0, 1, 2, 3};
  job.communicators[0].slots = {0, 0, 0, 0};
  job.communicators[0].name = "default_pg";
  job.classes[1].representative = 3;
  job.measured = {0, 1, 1};
  job.found_by = job::StepsFoundBy::optimizer;
  job.warmup_steps = 1;
  return job;
}

simulate::Timeline timeline() {
  const job::Job made = job();
  simulate::Timeline t;
  t.step_ns = 10.0 * ms, t.step_low_ns = 9.5 * ms, t.step_high_ns = 10.6 * ms;
  struct Piece {
    std::uint32_t op;
    std::uint16_t stream;
    std::int64_t start, end;  // microseconds within the step
  };
  // In the order of the step's records.
  const std::vector<Piece> pieces{{copy_in, 0, 100, 200},     {gemm, 0, 200, 3200},
                                  {attention, 0, 3200, 4200}, {loss, 0, 4200, 4700},
                                  {unknown, 0, 4700, 4900},   {all_reduce, 7, 4900, 8900},
                                  {gemm, 0, 4900, 7900},      {adamw, 0, 8900, 9900}};
  for (std::uint32_t c = 0; c < 2; ++c) {
    for (std::uint32_t s = 0; s < 3; ++s) {
      const std::int64_t base = 10 * ms * s;
      for (std::uint32_t i = 0; i < pieces.size(); ++i) {
        const std::uint32_t at = made.classes[c].step_begin[s] + i;
        const std::int64_t issue = base + 20'000 * (i + 1);
        t.host_spans.push_back({c, 0, at, issue - 20'000, issue, false});
        t.spans.push_back({c, pieces[i].stream, 0, pieces[i].op, at, issue,
                           base + pieces[i].start * 1000, base + pieces[i].end * 1000,
                           pieces[i].op == all_reduce ? static_cast<std::int64_t>(s) : -1});
      }
    }
    t.breakdown.push_back({8.6 * ms, 4.0 * ms, 1.0 * ms, 0.1 * ms, 0.3 * ms, 0.1 * ms});
  }
  using What = simulate::CriticalLink::What;
  t.critical_path = {{What::host, 0, 20, copy_in, 0, ms / 10},
                     {What::copy, 0, 20, copy_in, ms / 10, ms / 5},
                     {What::kernel, 0, 21, gemm, ms / 5, 32 * ms / 10},
                     {What::kernel, 0, 22, attention, 32 * ms / 10, 42 * ms / 10},
                     {What::kernel, 0, 23, loss, 42 * ms / 10, 47 * ms / 10},
                     {What::kernel, 0, 24, unknown, 47 * ms / 10, 49 * ms / 10},
                     {What::communication, 0, 25, all_reduce, 49 * ms / 10, 89 * ms / 10},
                     {What::kernel, 0, 27, adamw, 89 * ms / 10, 99 * ms / 10},
                     {What::wait, 0, 27, adamw, 99 * ms / 10, 10 * ms}};
  for (std::int64_t s = 0; s < 3; ++s) t.steps.push_back({10 * ms * s, 10 * ms * (s + 1), s > 0});
  t.measured_steps = 2;
  t.end_ns = 30 * ms;
  t.simulated_ops = t.spans.size();
  return t;
}

catalog::Cluster cluster() {
  catalog::Cluster cluster;
  cluster.name = "dgx-h100:1";
  cluster.gpu.name = "h100-sxm";
  cluster.gpu.memory_bytes = 80 * gib;
  cluster.gpu.context_bytes = gib / 2;
  cluster.gpu.peak_tflops = {{DType::bf16, 989}, {DType::f8e4m3, 1979}};
  cluster.gpus_per_node = 8;
  cluster.usd_per_gpu_hour = 4;
  cluster.price_source = "a list price";
  return cluster;
}

estimate::Estimate Estimator::operator()(const Op& op) const {
  auto of = [](double ns, estimate::Origin origin) {
    return estimate::Estimate{ns, 0.9 * ns, 1.1 * ns, origin};
  };
  if (std::holds_alternative<Gemm>(op.work)) return of(3.0 * ms, estimate::Origin::measured);
  if (std::holds_alternative<Attention>(op.work)) return of(1.0 * ms, estimate::Origin::fitted);
  if (std::holds_alternative<OtherKernel>(op.work)) return of(0.2 * ms, estimate::Origin::unknown);
  if (std::holds_alternative<OptimizerStep>(op.work)) return of(1.0 * ms, estimate::Origin::fitted);
  if (std::holds_alternative<CrossEntropy>(op.work)) return of(0.5 * ms, estimate::Origin::fitted);
  return of(0.1 * ms, estimate::Origin::first_principles);
}

network::CollectiveTime Network::collective(const Collective&,
                                            std::span<const std::int32_t>) const {
  return {4.0 * ms, 3.0 * ms, 5.0 * ms, estimate::Origin::first_principles, "ring", "simple", 16};
}

network::CollectiveTime Network::messages(std::span<const network::Message>) const {
  return {0.5 * ms, 0.4 * ms, 0.6 * ms, estimate::Origin::first_principles, "p2p", "simple", 2};
}

Prediction prediction() {
  const Estimator estimator;
  const Network network;
  return predict(job(), timeline(), {estimator, network}, cluster());
}

}  // namespace maya::report::sample
