// Measures the simulator relative to limits of the same run: a linear pass over the same records,
// and a binary heap with as many events. Prints operations per second and ratios. With --require it
// fails below the project's limit of 5 million simulated ops per second and core.
//
//   simulate_bench [--require] [RUN-recording.maya …]   default: a GPT run that is generated here

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <queue>
#include <string>
#include <vector>

#include "cpu_time.h"
#include "maya/collate.h"
#include "maya/simulate.h"

namespace {

using namespace maya;

// Durations are computed from the sizes. The estimator is called once per distinct op, so its speed
// does not matter.
class Roofline final : public estimate::Estimator {
 public:
  estimate::Estimate operator()(const Op& op) const override {
    double ns = 2000;
    if (const auto* g = std::get_if<Gemm>(&op.work))
      ns += 2.0 * static_cast<double>(g->m) * static_cast<double>(g->n) *
            static_cast<double>(g->k) / 4e5;
    if (const auto* p = std::get_if<Pointwise>(&op.work))
      ns += static_cast<double>(p->elements) / 500;
    if (const auto* p = std::get_if<OptimizerStep>(&op.work))
      ns += static_cast<double>(p->elements) / 100;
    return {ns, 0.9 * ns, 1.1 * ns, estimate::Origin::first_principles};
  }
};

class Ring final : public network::Network {
 public:
  explicit Ring(bool shares) : shares_(shares) {}
  network::Ports port_capacity() const override {
    return shares_ ? network::Ports{300, 300, 50, 50, 0, 0} : network::Ports{};
  }
  network::Load load(const Collective& op, std::span<const std::int32_t>,
                     std::int32_t) const override {
    return {static_cast<double>(op.bytes), {1.75, 1.75, 0.2, 0.2, 0, 0}};
  }
  network::Load load(std::span<const network::Message> group, std::int32_t) const override {
    return {static_cast<double>(group[0].bytes), {0, 0, 1, 1, 0, 0}};
  }
  network::CollectiveTime collective(const Collective& op,
                                     std::span<const std::int32_t>) const override {
    return time(2e4 + static_cast<double>(op.bytes) / 200);
  }
  network::CollectiveTime messages(std::span<const network::Message> group) const override {
    return time(1e4 + static_cast<double>(group[0].bytes) / 50);
  }

 private:
  static network::CollectiveTime time(double ns) {
    network::CollectiveTime t;
    t.ns = ns, t.low_ns = 0.9 * ns, t.high_ns = 1.1 * ns, t.channels = 16;
    return t;
  }
  bool shares_;
};

// The calls of PyTorch for data-parallel GPT training: forward and backward passes of each layer
// from two host threads, gradients that are reduced in buckets on another stream with events, an
// optimizer, and a loss that is read back.
trace::Recording gpt(int rank, int world, int stages, int layers, int steps) {
  trace::Recording r;
  r.identity.rank = rank, r.identity.world_size = world;
  r.complete = true;
  auto add_op = [&](Work work, const char* name) {
    r.ops.push_back({std::move(work), name, {}});
    return static_cast<std::uint32_t>(r.ops.size() - 1);
  };
  using trace::Kind;
  const int stage = rank * stages / world, per_stage = world / stages;
  std::uint32_t gemm[4], pointwise[3];
  for (int i = 0; i < 4; ++i)
    gemm[i] = add_op(Gemm{1024 * (1 + i % 2), 2048, 1024 * (1 + i / 2)}, "gemm");
  for (int i = 0; i < 3; ++i)
    pointwise[i] = add_op(Pointwise{(1 << 20) << i, 4 << 20, 4 << 20}, "pointwise");
  const std::uint32_t adam = add_op(OptimizerStep{OptimizerKind::adam, 50'000'000, 100}, "adam");
  const std::uint32_t reduce =
      add_op(Collective{CollectiveKind::all_reduce, 25 << 20, DType::bf16}, "ncclAllReduce");
  const std::uint32_t back = add_op(Copy{4, CopyDirection::device_to_host, true}, "loss");
  const std::uint32_t send_forward = add_op(PointToPoint{true, 8 << 20, stage + 1}, "ncclSend");
  const std::uint32_t receive_forward = add_op(PointToPoint{false, 8 << 20, stage - 1}, "ncclRecv");
  r.communicators.push_back(
      {static_cast<std::uint64_t>(100 + stage), rank % per_stage, per_stage, 0, "data"});
  r.communicators.push_back(
      {static_cast<std::uint64_t>(1000 + rank % per_stage), stage, stages, 0, "pipeline"});
  std::uint32_t event = 0;
  auto add = [&](Kind kind, std::uint32_t value, std::uint16_t stream, std::uint16_t thread,
                 std::uint8_t flags, std::uint32_t host, std::uint16_t aux = 0) {
    r.records.push_back({kind, flags, thread, host, stream, aux, value});
  };
  add(Kind::stream_create, 0, 1, 0, trace::non_blocking, 0, 1000);
  for (int s = 0; s < steps; ++s) {
    if (stage > 0) add(Kind::point_to_point, receive_forward, 0, 0, trace::legacy, 3000, 1);
    for (int l = 0; l < layers; ++l)
      for (int k = 0; k < 12; ++k)
        add(Kind::launch, k % 3 == 0 ? gemm[k / 3] : pointwise[k % 3], 0, 0, trace::legacy, 4000);
    if (stage + 1 < stages) add(Kind::point_to_point, send_forward, 0, 0, trace::legacy, 3000, 1);
    for (int l = 0; l < layers; ++l) {
      for (int k = 0; k < 20; ++k)
        add(Kind::launch, k % 3 == 0 ? gemm[k / 3 % 4] : pointwise[k % 3], 0, 1,
            trace::legacy | (l == 0 && k == 0 ? trace::resumed : 0), 5000);
      add(Kind::event_record, ++event, 0, 1, trace::legacy, 500);
      add(Kind::stream_wait_event, event, 1, 1, 0, 300);
      add(Kind::collective, reduce, 1, 1, 0, 2000, 0);
    }
    add(Kind::event_record, ++event, 1, 0, trace::resumed, 500);
    add(Kind::stream_wait_event, event, 0, 0, trace::legacy, 300);
    for (int k = 0; k < 8; ++k) add(Kind::launch, adam, 0, 0, trace::legacy, 9000);
    add(Kind::copy, back, 0, 0, trace::legacy | trace::blocking, 4000);
  }
  return r;
}

catalog::Cluster cluster_for(int world) {
  catalog::Cluster c;
  c.name = "bench";
  c.gpus_per_node = 8;
  c.nodes = (world + 7) / 8;
  c.gpu.sms = 132;
  c.gpu.launch_latency_us = 1;
  c.host.launch_us = 3, c.host.event_us = 0.5, c.host.sync_us = 2, c.host.memcpy_us = 4;
  return c;
}

struct Taken {
  double simulating, collating, bytes;
};

// Short runs are repeated more often.
double best_of(int times, auto&& what) {
  double best = 1e30, begin = seconds();
  for (int i = 0; i < times || (i < 50 && seconds() - begin < 0.2); ++i) {
    double start = seconds();
    what();
    best = std::min(best, seconds() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  bool require = false;
  std::vector<trace::Recording> recorded;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--require") == 0) {
      require = true;
      continue;
    }
#ifdef MAYA_BENCH_READS
    auto r = trace::read(argv[i]);
    if (!r) return std::fprintf(stderr, "%s\n", r.error().message.c_str()), 1;
    recorded.push_back(std::move(*r));
#endif
  }
  struct Case {
    const char* name;
    int world, stages, layers, steps;
    bool shares;  // collectives and messages of a GPU share its links
    bool few{};   // one rank of each stage is recorded
  };
  const Case cases[] = {{"gpt, 1 class, 8 ranks", 8, 1, 24, 200, false},
                        {"gpt, 1 class, 400 steps", 8, 1, 24, 400, false},
                        {"gpt, 4 stages, 32 ranks", 32, 4, 24, 100, false},
                        {"gpt, 8 stages, 64 ranks", 64, 8, 24, 100, false},
                        {"the same, sharing links", 64, 8, 24, 100, true},
                        {"8 stages, 8 of 64 ranks", 64, 8, 24, 20, false, true},
                        {"8 of 512 ranks", 512, 8, 24, 20, false, true},
                        {"8 of 4,096 ranks", 4096, 8, 24, 20, false, true},
                        {"8 of 16,384 ranks", 16384, 8, 24, 20, false, true}};
  simulate::Options options;
  std::printf("%-26s %10s %10s %10s %9s %9s %9s %9s\n", "", "records", "ops", "Mops/s", "Mrec/s",
              "collate s", "/linear", "/heap");
  double slowest = 1e30;
  auto measure = [&](const char* name, std::vector<trace::Recording> recordings, bool shares) {
    const int world = recordings[0].identity.world_size;
    const std::size_t before = mallinfo2().uordblks;
    double start = seconds();
    collate::Options how;
    how.gpus_per_node = 8;
    auto job = collate::collate(std::move(recordings), how);
    double collating = seconds() - start;
    const auto bytes = static_cast<double>(mallinfo2().uordblks) - static_cast<double>(before);
    if (!job) {
      std::fprintf(stderr, "%s\n", job.error().message.c_str());
      std::exit(1);
    }
    std::size_t records = 0;
    for (const auto& c : job->classes) records += c.recording.records.size();
    catalog::Cluster cluster = cluster_for(world);
    std::uint64_t ops = 0;
    double time = best_of(3, [&] {
      auto t = simulate::simulate(*job, cluster, Roofline(), Ring(shares), options);
      if (!t) {
        std::fprintf(stderr, "%s\n", t.error().message.c_str());
        std::exit(1);
      }
      ops = t->simulated_ops;
    });
    // Limit one: a pass that only reads the records.
    volatile std::uint64_t sink = 0;
    double linear = best_of(5, [&] {
      std::uint64_t sum = 0;
      for (const auto& c : job->classes)
        for (const auto& r : c.recording.records) sum += r.value + r.host_ns;
      sink = sink + sum;
    });
    // Limit two: as many events through a binary heap of 64.
    double heap = best_of(3, [&] {
      std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
      std::uint64_t x = 88172645463325252ull;
      for (int i = 0; i < 64; ++i) queue.push(static_cast<std::uint64_t>(i));
      for (std::size_t i = 0; i < records; ++i) {
        std::uint64_t t = queue.top();
        queue.pop();
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        queue.push(t + (x & 1023));
      }
      sink = sink + queue.top();
    });
    double rate = static_cast<double>(ops) / time / 1e6;
    if (!shares) slowest = std::min(slowest, rate);
    std::printf("%-26s %10zu %10llu %10.2f %9.2f %9.3f %8.1fx %8.2fx\n", name, records,
                static_cast<unsigned long long>(ops), rate,
                static_cast<double>(records) / time / 1e6, collating, time / linear, time / heap);
    return Taken{time, collating, bytes};
  };
  if (!recorded.empty()) measure("recorded run", std::move(recorded), false);
  std::vector<Taken> taken;
  for (const Case& c : cases) {
    std::vector<trace::Recording> ranks;
    for (int rank = 0; rank < c.world; rank += c.few ? c.world / c.stages : 1)
      ranks.push_back(gpt(rank, c.world, c.stages, c.layers, c.steps));
    taken.push_back(measure(c.name, std::move(ranks), c.shares));
  }
  std::printf("growth: twice the steps take %.2f times as long, twice the classes %.2f times\n",
              taken[1].simulating / taken[0].simulating, taken[3].simulating / taken[2].simulating);
  const Taken &small = taken[5], &large = taken[8];
  std::printf(
      "growth: 256 times the ranks in as many classes take %.2f times as long to collate, %.2f to "
      "simulate, and %.1f MB more\n",
      large.collating / small.collating, large.simulating / small.simulating,
      (large.bytes - small.bytes) / 1e6);
  std::printf(
      "ratios: time against a linear pass over the same records; against a binary heap of as many "
      "events\n");
  if (require && slowest < 5) {
    std::fprintf(stderr, "simulate_bench: %.2f million ops per second, at least 5 are required\n",
                 slowest);
    return 1;
  }
  return 0;
}
