// Compares our flow model with SimGrid, with the same links, routes and messages. SimGrid's model
// CM02 without latencies is max-min sharing.
#include <gtest/gtest.h>

#include <random>
#include <simgrid/s4u.hpp>

#include "network/flow.h"
#include "network/topology.h"

namespace maya::network {
namespace {

namespace sg = simgrid::s4u;

struct Sent {
  int from, to;
  double bytes, start_s;
};

sg::Engine& engine() {
  static sg::Engine* made = [] {
    static char name[] = "simgrid_test", quiet[] = "--log=root.thres:critical";
    static char* argv[] = {name, quiet, nullptr};
    static int argc = 2;
    auto* e = new sg::Engine(&argc, argv);
    sg::Engine::set_config("network/model:CM02");
    sg::Engine::set_config("network/crosstraffic:no");
    sg::Engine::set_config("network/TCP-gamma:0");
    return e;
  }();
  return *made;
}

catalog::Cluster cluster(std::string_view spec,
                         const std::vector<std::pair<std::string, std::string>>& overrides) {
  static const catalog::Catalog catalog = *catalog::Catalog::load(MAYA_SOURCE_DIR "/catalog");
  return *catalog.cluster(spec, overrides);
}

std::vector<Sent> random_traffic(int ranks, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Sent> sent;
  while (static_cast<int>(sent.size()) < count) {
    int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    int to = static_cast<int>(random() % static_cast<unsigned>(ranks));
    if (from == to) continue;
    sent.push_back({from, to, 1e6 * (1 + random() % 400), 1e-3 * (random() % 8)});
  }
  return sent;
}

std::vector<double> ours(const Topology& topology, const std::vector<Sent>& sent) {
  std::vector<std::vector<Use>> routes(sent.size());
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    topology.route(sent[i].from, sent[i].to, 1, routes[i]);
    flows.push_back({.bytes = sent[i].bytes,
                     .cap = 1e9,
                     .uses = &routes[i],
                     .start_ns = sent[i].start_s * 1e9});
  }
  auto result = simulate(topology.capacities(), flows);
  std::vector<double> ends;
  for (const Interval& interval : *result) ends.push_back(interval.end_ns * 1e-9);
  return ends;
}

// SimGrid allows one platform per engine and one engine per process. So each case is a zone below a
// common root, and starts when the previous case has ended.
std::vector<double> theirs(sg::NetZone* zone, const std::string& prefix, const Topology& topology,
                           int ranks, const std::vector<Sent>& sent, std::vector<double>& ends) {
  std::vector<sg::Host*> hosts;
  std::vector<const sg::Link*> links;
  for (int i = 0; i < ranks; ++i) {
    hosts.push_back(zone->create_host(prefix + "gpu" + std::to_string(i), 1e9));
    hosts.back()->seal();
  }
  for (std::size_t l = 0; l < topology.capacities().size(); ++l)
    links.push_back(
        zone->create_link(prefix + "link" + std::to_string(l), topology.capacities()[l] * 1e9)
            ->set_latency(0)
            ->seal());
  std::set<std::pair<int, int>> known;
  ends.assign(sent.size(), 0);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const Sent& m = sent[i];
    if (known.insert({m.from, m.to}).second) {
      std::vector<Use> route;
      topology.route(m.from, m.to, 1, route);
      std::vector<sg::LinkInRoute> path;
      for (const Use& use : route) path.emplace_back(links[static_cast<std::size_t>(use.link)]);
      zone->add_route(hosts[static_cast<std::size_t>(m.from)]->get_netpoint(),
                      hosts[static_cast<std::size_t>(m.to)]->get_netpoint(), nullptr, nullptr, path,
                      false);
    }
    sg::Actor::create(prefix + std::to_string(i), hosts[static_cast<std::size_t>(m.from)],
                      [m, i, &ends, from = hosts[static_cast<std::size_t>(m.from)],
                       to = hosts[static_cast<std::size_t>(m.to)]] {
                        sg::this_actor::sleep_until(m.start_s);
                        sg::Comm::sendto(from, to, static_cast<std::uint64_t>(m.bytes));
                        ends[i] = sg::Engine::get_clock();
                      });
  }
  return ends;
}

TEST(SimGrid, EveryMessageEndsAtTheSameTime) {
  struct Case {
    const char* name;
    catalog::Cluster cluster;
  };
  std::vector<Case> cases{
      {"flat", cluster("dgx-h100:8", {})},
      {"fat tree 4 : 1", cluster("dgx-h100:8", {{"network.oversubscription", "4"},
                                                {"network.gpus_per_leaf", "16"},
                                                {"network.rail_optimized", "false"}})},
      {"rails 2 : 1",
       cluster("dgx-h100:8", {{"network.oversubscription", "2"}, {"network.gpus_per_leaf", "2"}})},
      {"shared cards", cluster("p4de:8", {})}};
  engine();
  auto* root = sg::create_full_zone("root");
  std::vector<Topology> topologies;
  std::vector<std::vector<Sent>> sent;
  std::vector<std::vector<double>> ends(cases.size());
  for (const Case& c : cases) {
    Time time{};
    time.nic_efficiency = 0.9;
    topologies.emplace_back(c.cluster, time);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    int ranks = cases[i].cluster.world_size();
    sent.push_back(random_traffic(ranks, 300, 11 + static_cast<unsigned>(i)));
    auto* zone = sg::create_full_zone("zone" + std::to_string(i))->set_parent(root);
    theirs(zone, "c" + std::to_string(i) + "_", topologies[i], ranks, sent[i], ends[i]);
    zone->seal();
  }
  root->seal();
  engine().run();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto mine = ours(topologies[i], sent[i]);
    double worst = 0;
    for (std::size_t m = 0; m < mine.size(); ++m) {
      double theirs_took = ends[i][m] - sent[i][m].start_s,
             ours_took = mine[m] - sent[i][m].start_s;
      worst = std::max(worst, std::abs(ours_took / theirs_took - 1));
    }
    std::printf("%s: %zu messages, largest difference %.2e\n", cases[i].name, mine.size(), worst);
    EXPECT_LT(worst, 1e-3) << cases[i].name;
  }
}

}  // namespace
}  // namespace maya::network
