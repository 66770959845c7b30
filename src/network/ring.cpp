// Ring: every rank sends to the next. Each byte passes every link once (all-gather,
// reduce-scatter, broadcast, reduce) or twice (all-reduce), so with n ranks and S bytes
//   t = start + steps · hop + S · steps / n / B,   B = min(inside, outside).
#include <algorithm>

#include "network/candidate.h"

namespace maya::network {

void add_ring(const Context& x, std::vector<Candidate>& out) {
  const Tuner& t = x.parameters.tuner;
  const Time& m = x.parameters.time;
  const Shape& s = x.shape;
  bool many = s.islands > 1;
  bool rooted = x.kind == CollectiveKind::broadcast || x.kind == CollectiveKind::reduce;
  double speed{};
  double believed = x.inside_gbps(true);
  // In short rings more data is reduced and copied per byte sent.
  double real = x.inside_gbps(false) * m.ring[kSimple] * (1 - m.short_ring / (s.ranks * s.ranks));
  if (s.most_per_island == 1) believed = real = 1e9;  // nothing moves inside
  if (many)
    believed = std::min(believed, x.outside_gbps(true)),
    real = std::min(real, x.outside_gbps(false));
  int channels = x.planned_channels(believed, &speed);
  believed = channels * speed;
  double ratio = s.ranks / x.steps();
  double per_island = double(s.ranks) / s.islands;
  for (int p = 0; p < kProtocols; ++p) {
    auto protocol = static_cast<Protocol>(p);
    if (!x.allows(protocol)) continue;
    Candidate c{.algorithm = kRing, .protocol = protocol};
    auto limit = [&](double gbps) {
      if (protocol == kLL) return std::min(t.ll_max[x.by_nodes()], gbps * 0.5);
      if (protocol == kLL128) return std::min(gbps * 0.92, channels * t.ring_ll128[x.by_nodes()]);
      return gbps;
    };
    c.tuner_gbps = limit(believed) * ratio;
    c.gbps = limit(real) * ratio * (protocol == kSimple ? 1 : m.ring[p]);
    Hardware intra = x.wire();
    double overhead = 0;
    if (many) {
      overhead =
          x.environment.net_overhead_us >= 0 ? x.environment.net_overhead_us : t.net_overhead_us;
      if (protocol == kSimple) overhead *= 3;
    }
    double inside = std::max(t.hw[intra][kRing][p], overhead);
    double outside = t.hw[kNet][per_island == 1 ? kTree : kRing][p] +
                     t.net_latency_us * (protocol == kSimple ? 2 : 1);
    double network_steps = x.network_steps();
    double inner_steps = x.steps() - network_steps;
    if (rooted) {
      // The first chunk of the pipeline passes every rank. NCCL counts one hop if rings are
      // aligned.
      double hop = many ? outside : t.hw[intra][kRing][p];
      c.tuner_latency_us = t.base[kRing][p] + hop;
      c.latency_us = m.start_us + m.latency[intra] * t.hw[intra][kRing][p] * (s.ranks - s.islands) +
                     x.network_hop_us(outside) * (s.islands - 1);
    } else {
      c.tuner_latency_us = t.base[kRing][p] + inner_steps * inside + network_steps * outside;
      c.latency_us = m.start_us + m.latency[intra] * inner_steps * t.hw[intra][kRing][p] +
                     network_steps * x.network_hop_us(outside);
    }
    // Over PCIe the pipeline needs no time to fill.
    if (protocol == kSimple && x.wire() == kNvlink)
      c.fill_bytes = m.fill_ring, c.half_bytes = m.half_ring;
    c.channels = std::min(32, many ? std::max(2, channels) : 2 * channels);
    c.thread_threshold = protocol == kLL ? 8.0 * s.ranks : protocol == kLL128 ? 8 : 64;
    out.push_back(c);
  }
}

}  // namespace maya::network
