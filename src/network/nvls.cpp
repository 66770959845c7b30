// NVLS: the NVSwitch reduces. A GPU sends its S bytes to the switch once and receives S bytes. As
// the owner of one part it also transfers S/n more in each direction:
//   t = start + S · (1 + 1/n) / link    (all-reduce)
// With several islands it is NVLSTree: a tree between the owners over the cards.
#include <algorithm>
#include <bit>

#include "network/candidate.h"

namespace maya::network {
namespace {
constexpr int kMostHeads = 32;  // NCCL_MAX_NVLS_ARITY
}

void add_nvls(const Context& x, std::vector<Candidate>& out) {
  const Tuner& t = x.parameters.tuner;
  const Time& m = x.parameters.time;
  const Shape& s = x.shape;
  const Environment& e = x.environment;
  bool many = s.islands > 1;
  bool reduces = x.kind == CollectiveKind::all_reduce;
  bool shards = x.kind == CollectiveKind::all_gather || x.kind == CollectiveKind::reduce_scatter;
  int inside = s.most_per_island;
  bool wide = inside > kMostHeads;  // several levels of switches and of owners
  if (!x.cluster.nvls || !e.nvls || !e.p2p || s.wire != Wire::nvlink || inside < 2) return;
  if (e.version < (many ? 21800 : 21700)) return;
  if (!reduces && (!shards || many)) return;

  // One head per GPU; the channel speed is the largest of NCCL's list that fits the link.
  int heads = std::min(inside, kMostHeads);
  double total = x.inside_gbps(true) * inside / (inside - 1), speed = 0;
  for (double v : t.speeds)
    if (v > 0 && v * heads <= total) speed = std::max(speed, v);
  if (speed == 0) speed = total / heads;
  Candidate c{.algorithm = many ? kNvlsTree : kNvls, .protocol = kSimple};
  double outside = many ? x.outside_gbps(true) / heads : 0;
  if (many && outside < speed) {  // the channel also passes through the card
    double slower = 0;
    for (double v : t.speeds)
      if (v > 0 && v <= outside) slower = std::max(slower, v);
    speed = slower > 0 ? slower : outside;
  }
  double believed = speed * t.nvls_efficiency * (heads - 1) / heads;
  believed *= reduces ? 2 : double(inside - 1) / inside;
  if (many)
    believed = std::min({believed, speed * (s.islands == 2 ? 2 : 1), t.nvls_tree[x.by_nodes()]});
  c.tuner_gbps = believed * heads;
  if (reduces) c.tuner_gbps *= s.ranks / x.steps();

  double link = x.inside_gbps(false);
  double depth = many ? std::bit_width(static_cast<unsigned>(s.islands)) - 1 : 0;
  if (reduces) {
    c.gbps = link / (1 + 1.0 / inside) * (many ? m.nvls_tree : wide ? m.nvls_wide : m.nvls);
    if (many) c.gbps = std::min(c.gbps, x.outside_gbps(false) * (s.islands == 2 ? 1 : 0.5));
  } else {
    c.gbps = link * m.nvls;  // every byte passes the link once
  }
  double in = t.hw[kNvlink][c.algorithm][kSimple];
  double out_us = t.hw[kNet][c.algorithm][kSimple] + 2 * t.net_latency_us;
  c.tuner_latency_us = in + 2 * depth * out_us;
  c.latency_us = m.start_us + m.nvls_us + 2 * depth * x.network_hop_us(out_us);
  c.fill_bytes = wide ? m.fill_nvls_wide : many ? m.fill_nvls_tree : m.fill_nvls;
  c.half_bytes = many ? m.half_nvls_tree : m.half_nvls;
  c.channels = std::max(16, std::min(32, 2 * heads));
  c.thread_threshold = 64;
  out.push_back(c);
}

}  // namespace maya::network
