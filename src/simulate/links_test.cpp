// Compares the sharing of links in the simulator with the flow-level network model, on jobs in
// which all GPUs of a machine do identical work. There the two must agree.
#include <gtest/gtest.h>

#include "collate/testing/recording_builder.h"
#include "maya/collate.h"
#include "maya/simulate.h"
#include "network/flow_network.h"
#include "network/open.h"
#include "simulate/testing/plain_machine.h"

namespace maya::testing {
namespace {

constexpr std::int64_t MB = 1 << 20;

catalog::Cluster cluster(std::string_view spec) {
  static const catalog::Catalog catalog = *catalog::Catalog::load(MAYA_SOURCE_DIR "/catalog");
  catalog::Cluster c = *catalog.cluster(spec);
  c.host = {};  // calls take no time, so everything starts together
  c.gpu.launch_latency_us = 0;
  return c;
}

struct Call {
  std::vector<std::int32_t> (*members)(std::int32_t rank, std::int32_t world);
  Collective op;
};

std::vector<std::int32_t> everybody(std::int32_t, std::int32_t world) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t r = 0; r < world; ++r) ranks.push_back(r);
  return ranks;
}
std::vector<std::int32_t> my_node(std::int32_t rank, std::int32_t world) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t r = 0; r < world; ++r)
    if (r / 8 == rank / 8) ranks.push_back(r);
  return ranks;
}
std::vector<std::int32_t> my_column(std::int32_t rank, std::int32_t world) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t r = rank % 8; r < world; r += 8) ranks.push_back(r);
  return ranks;
}

// Longest time from start to end of each call, all started together on streams of their own.
std::vector<double> simulated(const catalog::Cluster& c, const std::vector<Call>& calls) {
  const std::int32_t world = c.world_size();
  std::vector<trace::Recording> recordings;
  for (std::int32_t rank = 0; rank < world; ++rank) {
    RecordingBuilder r(rank, world);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto ranks = calls[i].members(rank, world);
      r.communicator(1000 * (i + 1) + static_cast<std::uint64_t>(ranks[0]), ranks);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto stream = static_cast<std::uint16_t>(i + 1);
      r.create_stream(stream);
      r.on(stream).add(trace::Kind::collective, r.op({calls[i].op, "collective"}),
                       static_cast<std::uint16_t>(i));
    }
    recordings.push_back(r.done());
  }
  collate::Options how;
  how.gpus_per_node = 8;
  how.steps = 1;
  auto job = collate::collate(std::move(recordings), how);
  EXPECT_TRUE(job) << job.error().message;
  auto network = *network::open_network(c);
  simulate::Options options;
  options.keep_spans = true;
  auto t = simulate::simulate(*job, c, SizeEstimator(), *network, options);
  EXPECT_TRUE(t) << t.error().message;
  std::vector<double> result(calls.size());
  for (const simulate::Span& s : t->spans)
    result[s.stream - 1] =
        std::max(result[s.stream - 1], static_cast<double>(s.end_ns - s.start_ns));
  return result;
}

std::vector<double> flows(const catalog::Cluster& c, const std::vector<Call>& calls) {
  network::FlowNetwork network(
      c, *network::parameters_of(c.extra), network::environment_of({}),
      *network::Measured::load(MAYA_SOURCE_DIR "/catalog/network/measured.csv", c.gpu.name));
  std::vector<network::Activity> activities;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (std::int32_t rank = 0; rank < c.world_size(); ++rank) {
      auto ranks = calls[i].members(rank, c.world_size());
      if (ranks[0] != rank) continue;  // once per communicator
      activities.push_back({.op = calls[i].op, .ranks = ranks});
      of.push_back(i);
    }
  auto intervals = network.run(activities);
  EXPECT_TRUE(intervals) << intervals.error().message;
  std::vector<double> result(calls.size());
  for (std::size_t k = 0; k < of.size(); ++k)
    result[of[k]] = std::max(result[of[k]], (*intervals)[k].end_ns);
  return result;
}

void agree(std::string_view spec, const std::vector<Call>& calls, double within) {
  catalog::Cluster c = cluster(spec);
  auto ours = simulated(c, calls), theirs = flows(c, calls);
  for (std::size_t i = 0; i < calls.size(); ++i)
    EXPECT_NEAR(ours[i] / theirs[i], 1, within)
        << spec << " call " << i << ": " << ours[i] << " ns, as flows " << theirs[i] << " ns";
}

const Collective gather{CollectiveKind::all_gather, 512 * MB};
const Collective scatter{CollectiveKind::reduce_scatter, 256 * MB};
const Collective reduce{CollectiveKind::all_reduce, 512 * MB, DType::bf16};

TEST(Links, AgreesWithFlowModelAloneAndTogether) {
  for (const char* spec : {"dgx-a100", "dgx-h100", "dgx-h100:2", "p4de:2"}) {
    agree(spec, {{everybody, gather}}, 0.06);
    agree(spec, {{everybody, gather}, {everybody, scatter}}, 0.10);
  }
}

TEST(Links, CommunicationsOverDifferentLinksDoNotSlowEachOther) {
  catalog::Cluster c = cluster("dgx-h100:4");
  auto both = simulated(c, {{my_node, reduce}, {my_column, gather}});
  auto first = simulated(c, {{my_node, reduce}}), second = simulated(c, {{my_column, gather}});
  EXPECT_NEAR(both[0] / first[0], 1, 0.01);
  EXPECT_NEAR(both[1] / second[0], 1, 0.01);
  agree("dgx-h100:4", {{my_node, reduce}, {my_column, gather}}, 0.06);
}

TEST(Links, TwoCommunicationsOverTheSameLinksTakeTwiceAsLong) {
  catalog::Cluster c = cluster("dgx-h100:4");
  auto alone = simulated(c, {{my_column, gather}});
  auto both = simulated(c, {{my_column, gather}, {my_column, gather}});
  EXPECT_NEAR(both[0] / alone[0], 2, 0.2);
  agree("dgx-h100:4", {{my_column, gather}, {my_column, gather}}, 0.10);
}

}  // namespace
}  // namespace maya::testing
