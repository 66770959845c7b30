// Tree (all-reduce): a chain inside each island, two complementary binary trees between islands,
// half the data each, up and down.
//   between islands a card sends S with two islands and 2 S with more (as an inner node of one tree
//   and a leaf of the other): t ≥ S / outside  or  2 S / outside.
#include <algorithm>
#include <bit>

#include "network/candidate.h"

namespace maya::network {

void add_tree(const Context& x, std::vector<Candidate>& out) {
  if (x.kind != CollectiveKind::all_reduce || x.shape.ranks < 2) return;
  const Tuner& t = x.parameters.tuner;
  const Time& m = x.parameters.time;
  const Shape& s = x.shape;
  int at = x.by_nodes();
  bool many = s.islands > 1;
  double speed{};
  double believed = x.inside_gbps(true);
  if (s.most_per_island == 1) believed = 1e9;
  if (many) believed = std::min(believed, x.outside_gbps(true) * (s.islands == 2 ? 2 : 1));
  int channels = x.planned_channels(believed, &speed);
  believed = channels * speed;
  // Bus bandwidth as NCCL defines it: twice the data rate.
  double real = s.most_per_island == 1 ? 1e9 : x.inside_gbps(false) * 0.92 * m.tree[kSimple];
  if (many) real = std::min(real, x.outside_gbps(false) * (s.islands == 2 ? 2 : 1));
  double depth = many ? std::bit_width(static_cast<unsigned>(s.islands)) - 1 : 0;
  const int longest = s.ranks / s.islands - 1;
  const double chain = longest;
  for (int p = 0; p < kProtocols; ++p) {
    auto protocol = static_cast<Protocol>(p);
    if (!x.allows(protocol)) continue;
    Candidate c{.algorithm = kTree, .protocol = protocol};
    auto limit = [&](double gbps) {
      gbps = std::min(gbps, channels * t.tree[at]);
      if (protocol == kLL) return std::min(gbps / 3.8, t.ll_max[at]);
      if (protocol == kLL128)
        return std::min(gbps * (many ? 120.0 / 128 : 7.0 / 9), channels * t.tree_ll128[at]);
      return gbps;
    };
    c.tuner_gbps = limit(believed * 0.92) * 0.5;
    c.gbps = limit(real) * 0.5 * (protocol == kSimple ? 1 : m.tree[p]);
    double inside = t.hw[x.wire()][kTree][p];
    double outside = t.hw[kNet][kTree][p] + t.net_latency_us * (protocol == kSimple ? 2 : 1);
    c.tuner_latency_us = t.base[kTree][p] + 2 * (chain * inside + depth * outside);
    c.latency_us =
        m.start_us + 2 * (m.latency[x.wire()] * chain * inside + depth * x.network_hop_us(outside));
    if (protocol == kSimple) c.fill_bytes = m.fill_tree, c.half_bytes = m.half_tree;
    c.channels = std::min(32, many ? std::max(2, channels) : 2 * channels);
    c.thread_threshold = protocol == kSimple ? 64 : 8;
    out.push_back(c);
  }
}

}  // namespace maya::network
