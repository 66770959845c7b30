// CollNet (all-reduce): the InfiniBand switches reduce (SHARP). Every card sends and receives
// S / heads once; inside the island the GPUs exchange data over NVSwitch.
#include <algorithm>

#include "network/candidate.h"

namespace maya::network {

void add_collnet(const Context& x, std::vector<Candidate>& out) {
  const Tuner& t = x.parameters.tuner;
  const Time& m = x.parameters.time;
  const Shape& s = x.shape;
  if (x.kind != CollectiveKind::all_reduce || s.islands < 2) return;
  if (!t.sharp && !x.environment.collnet) return;
  bool direct = x.cluster.nvswitch;
  Candidate c{.algorithm = direct ? kCollnetDirect : kCollnetChain, .protocol = kSimple};
  double in = t.hw[x.wire()][c.algorithm][kSimple], net = t.hw[kNet][c.algorithm][kSimple];
  double chain = double(s.ranks) / s.islands - 1;
  double believed = std::min(x.inside_gbps(true), x.outside_gbps(true));
  c.tuner_gbps = believed * (x.cluster.gpu.capability_major >= 9 ? 0.85 : 1) * 0.5;
  double real = s.most_per_island == 1 ? 1e9 : x.inside_gbps(false);
  c.gbps = std::min(real, x.outside_gbps(false)) * 0.5 * m.collnet;
  double hops = direct ? 2 * (std::min(1.0, chain) * in + chain * 0.4) : 2 * chain * in;
  c.tuner_latency_us = hops + net;
  c.latency_us = m.start_us + m.latency[x.wire()] * hops + x.network_hop_us(net);
  c.fill_bytes = m.fill_tree, c.half_bytes = m.half_tree;
  c.channels = std::max(2, std::min(16, x.cluster.nics_per_node));
  out.push_back(c);
}

}  // namespace maya::network
