#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "network/flow_network.h"
#include "network/max_min.h"
#include "network/open.h"

namespace maya::network {
namespace {

catalog::Cluster cluster(std::string_view spec,
                         const std::vector<std::pair<std::string, std::string>>& overrides = {}) {
  static const catalog::Catalog catalog = *catalog::Catalog::load(MAYA_SOURCE_DIR "/catalog");
  return *catalog.cluster(spec, overrides);
}

std::vector<std::int32_t> ranks(int count, int stride = 1, int first = 0) {
  std::vector<std::int32_t> group;
  for (int i = 0; i < count; ++i) group.push_back(first + i * stride);
  return group;
}

FlowNetwork flow(const catalog::Cluster& c) {
  return {c, *parameters_of(c.extra), environment_of({})};
}

constexpr std::int64_t MB = 1 << 20, GB = 1 << 30;

TEST(MaxMin, TextbookCase) {
  // Two links of 1 and 2: flow 0 on both, flow 1 on the first, flow 2 on the second.
  std::vector<Use> both{{0, 1}, {1, 1}}, first{{0, 1}}, second{{1, 1}};
  MaxMin solver({1, 2});
  std::vector<MaxMin::Flow> flows{{both, 9}, {first, 9}, {second, 9}};
  solver.solve(flows);
  EXPECT_DOUBLE_EQ(flows[0].rate, 0.5);
  EXPECT_DOUBLE_EQ(flows[1].rate, 0.5);
  EXPECT_DOUBLE_EQ(flows[2].rate, 1.5);
  flows[1].cap = 0.1;  // the rest of the link goes to the other flow
  solver.solve(flows);
  EXPECT_DOUBLE_EQ(flows[0].rate, 0.9);
  EXPECT_DOUBLE_EQ(flows[1].rate, 0.1);
  EXPECT_DOUBLE_EQ(flows[2].rate, 1.1);
}

// Checks the definition on random networks: no link is overloaded, and every flow is at its cap or
// uses a full link on which no other flow is faster.
TEST(MaxMin, IsMaxMinFairOnRandomNetworks) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    int links = 1 + static_cast<int>(random() % 8), count = 1 + static_cast<int>(random() % 12);
    std::vector<double> capacity;
    for (int l = 0; l < links; ++l)
      capacity.push_back(0.5 + static_cast<double>(random() % 100) / 10);
    std::vector<std::vector<Use>> uses(static_cast<std::size_t>(count));
    std::vector<MaxMin::Flow> flows;
    for (auto& u : uses) {
      for (int l = 0; l < links; ++l)
        if (random() % 3 == 0) u.push_back({l, 0.25 * static_cast<double>(1 + random() % 8)});
      flows.push_back({u, 0.2 + static_cast<double>(random() % 50) / 5});
    }
    MaxMin(capacity).solve(flows);
    std::vector<double> load(static_cast<std::size_t>(links));
    for (const auto& f : flows)
      for (const Use& use : f.uses) load[static_cast<std::size_t>(use.link)] += use.weight * f.rate;
    for (int l = 0; l < links; ++l)
      EXPECT_LE(load[static_cast<std::size_t>(l)],
                capacity[static_cast<std::size_t>(l)] * (1 + 1e-9));
    for (const auto& f : flows) {
      bool bound = f.rate >= f.cap * (1 - 1e-9);
      for (const Use& use : f.uses) {
        auto l = static_cast<std::size_t>(use.link);
        bool full = load[l] >= capacity[l] * (1 - 1e-9), fastest = true;
        for (const auto& g : flows)
          for (const Use& other : g.uses)
            if (other.link == use.link && g.rate > f.rate * (1 + 1e-9)) fastest = false;
        bound |= full && fastest;
      }
      EXPECT_TRUE(bound);
    }
  }
}

TEST(Flow, SingleActivityAgreesWithTheClosedForm) {
  for (const char* spec : {"dgx-a100", "dgx-h100", "dgx-h100:4", "dgx-a100:8", "p4de:2", "p5:2",
                           "gb200-nvl72:18", "dgx-b200:4"}) {
    auto c = cluster(spec);
    auto closed = *open_network(c);
    auto flows = *open_network(c, {}, Model::flow);
    for (auto kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::all_to_all})
      for (std::int64_t bytes : {64 * 1024l, 16 * MB, GB}) {
        Collective op{.kind = kind, .bytes = bytes};
        double a = closed->collective(op, ranks(c.world_size())).ns;
        double b = flows->collective(op, ranks(c.world_size())).ns;
        // If NCCL makes a bad choice, the closed form limits the time (curve.h); flows do not.
        const double apart = kind == CollectiveKind::broadcast ? 0.14 : 0.06;
        EXPECT_NEAR(b / a, 1, apart) << spec << " " << enum_name(kind) << " " << bytes;
      }
  }
}

TEST(Flow, ParallelGroupsShareTheCards) {
  // One data-parallel group per GPU of a machine. With one card each they do not slow each other
  // down. With half a card each, the closed form already includes the other groups.
  auto c = cluster("dgx-h100:4");
  auto network = flow(c);
  std::vector<Activity> together;
  for (int g = 0; g < 8; ++g)
    together.push_back(
        {.op = {.kind = CollectiveKind::all_reduce, .bytes = 256 * MB}, .ranks = ranks(4, 8, g)});
  auto all = *network.run(together);
  auto one = *network.run({together.data(), 1});
  for (const auto& interval : all)
    EXPECT_NEAR(interval.end_ns, one[0].end_ns, one[0].end_ns * 1e-6);
  // Two collectives over the same GPUs take about twice as long as one.
  std::vector<Activity> twice(
      2, {.op = {.kind = CollectiveKind::all_gather, .bytes = GB}, .ranks = ranks(32)});
  auto both = *network.run(twice);
  auto alone = *network.run({twice.data(), 1});
  EXPECT_NEAR(both[1].end_ns / alone[0].end_ns, 2, 0.15);
}

TEST(Flow, OversubscribedSpineSlowsTrafficThatCrossesIt) {
  auto flat = cluster("dgx-h100:16");
  auto thin = cluster("dgx-h100:16", {{"network.oversubscription", "4"},
                                      {"network.gpus_per_leaf", "32"},
                                      {"network.rail_optimized", "false"}});
  Activity inside{.messages = {{0, 8, 64 * MB}}};
  std::vector<Activity> many;
  for (int i = 0; i < 32; ++i) many.push_back({.messages = {{i, 64 + i, 64 * MB}}});
  auto near = flow(thin).run({&inside, 1}), same = flow(flat).run({&inside, 1});
  EXPECT_NEAR((*near)[0].end_ns, (*same)[0].end_ns, 1);
  double free = 0, jam = 0;
  auto wide = flow(flat).run(many), narrow = flow(thin).run(many);
  for (const auto& i : *wide) free = std::max(free, i.end_ns);
  for (const auto& i : *narrow) jam = std::max(jam, i.end_ns);
  // A single message does not saturate its card, so a quarter of the trunk costs less than a factor
  // of four.
  EXPECT_GT(jam / free, 3);
  EXPECT_LT(jam / free, 4.1);
}

TEST(Flow, OrderAndErrors) {
  auto network = flow(cluster("dgx-h100"));
  Collective op{.kind = CollectiveKind::all_reduce, .bytes = 64 * MB};
  std::vector<Activity> chain(3, {.op = op, .ranks = ranks(8)});
  chain[1].after = {0}, chain[2].after = {1}, chain[2].start_ns = 1000;
  auto t = *network.run(chain);
  EXPECT_DOUBLE_EQ(t[1].start_ns, t[0].end_ns);
  EXPECT_DOUBLE_EQ(t[2].start_ns, t[1].end_ns + 1000);
  chain[0].after = {2};
  auto cycle = network.run(chain);
  EXPECT_FALSE(cycle);
  EXPECT_NE(cycle.error().message.find("cycle"), std::string::npos);
  chain[0].after = {7};
  EXPECT_NE(network.run(chain).error().message.find("does not exist"), std::string::npos);
  chain[0].after = {}, chain[0].ranks = ranks(9);
  EXPECT_NE(network.run(chain).error().message.find("more nodes"), std::string::npos);
}

// Tensor 8 × pipeline 8 × data 64 on 512 machines: forward and backward of 8 microbatches with an
// all-gather and a reduce-scatter per layer and direction, activations between stages, then the
// gradients. Every pipeline starts a little later than its neighbour, so no two events coincide.
TEST(Flow, StepOf4096Gpus) {
  constexpr int kTensor = 8, kPipe = 8, kData = 64, kMicro = 8, kLayers = 4;
  auto c = cluster("dgx-h100:512");
  auto network = flow(c);
  std::vector<Activity> step;
  auto first = [](int d, int p) { return (d * kPipe + p) * kTensor; };
  std::vector<std::int32_t> last(kData * kPipe, -1);
  for (int m = 0; m < kMicro; ++m)
    for (int p = 0; p < kPipe; ++p)
      for (int d = 0; d < kData; ++d) {
        auto& before = last[static_cast<std::size_t>(d * kPipe + p)];
        for (int l = 0; l < kLayers; ++l)
          for (auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
            Activity a{.op = {.kind = kind, .bytes = 32 * MB},
                       .ranks = ranks(kTensor, 1, first(d, p))};
            a.start_ns = 150e3 + 100.0 * d;
            if (before >= 0) a.after.push_back(before);
            before = static_cast<std::int32_t>(step.size());
            step.push_back(std::move(a));
          }
        if (p + 1 < kPipe) {
          Activity send{.after = {before}};
          for (int t = 0; t < kTensor; ++t)
            send.messages.push_back({first(d, p) + t, first(d, p + 1) + t, 4 * MB});
          before = static_cast<std::int32_t>(step.size());
          step.push_back(std::move(send));
        }
      }
  for (int p = 0; p < kPipe; ++p)
    for (int t = 0; t < kTensor; ++t) {
      Activity a{.op = {.kind = CollectiveKind::all_reduce, .bytes = 512 * MB},
                 .ranks = ranks(kData, kPipe * kTensor, p * kTensor + t)};
      for (int d = 0; d < kData; ++d)
        a.after.push_back(last[static_cast<std::size_t>(d * kPipe + p)]);
      step.push_back(std::move(a));
    }
  auto start = std::chrono::steady_clock::now();
  auto result = network.run(step);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(result) << result.error().message;
  RecordProperty("activities", static_cast<int>(step.size()));
  RecordProperty("seconds", std::to_string(took.count()));
  std::printf("%zu activities on %d GPUs in %.2f s\n", step.size(), c.world_size(), took.count());
  EXPECT_LT(took.count(), 5);
}

}  // namespace
}  // namespace maya::network
