// PAT: all-gather and reduce-scatter in a logarithmic number of network steps, for one GPU per
// node.
#include <algorithm>
#include <bit>

#include "network/candidate.h"

namespace maya::network {

void add_pat(const Context& x, std::vector<Candidate>& out) {
  const Tuner& t = x.parameters.tuner;
  const Time& m = x.parameters.time;
  const Shape& s = x.shape;
  bool shards = x.kind == CollectiveKind::all_gather || x.kind == CollectiveKind::reduce_scatter;
  if (!shards || s.islands < 2 || s.islands != s.ranks || !x.environment.pat) return;
  if (x.environment.version < 22300 || x.cluster.gpu.capability_major < 6) return;
  Candidate c{.algorithm = kPat, .protocol = kSimple};
  double steps = std::bit_width(static_cast<unsigned>(s.islands)) - 1;
  double net = t.hw[kNet][kPat][kSimple] + 2 * t.net_latency_us;
  c.tuner_gbps = x.outside_gbps(true) * 0.75;
  c.tuner_latency_us = t.base[kPat][kSimple] + steps * net / 3.5 + s.ranks * 2.8;
  c.gbps = x.outside_gbps(false) * m.pat * s.ranks / std::max(1, s.ranks - 1);
  c.latency_us = m.start_us + steps * x.network_hop_us(net) / 3.5 + s.ranks * 0.7;
  c.fill_bytes = m.fill_ring, c.half_bytes = m.half_ring;
  c.channels = 2;
  out.push_back(c);
}

}  // namespace maya::network
