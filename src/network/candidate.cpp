#include "network/candidate.h"

#include <algorithm>

namespace maya::network {

double Context::steps() const {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2.0 * (shape.ranks - 1);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return shape.ranks - 1;
    default:
      return shape.ranks;
  }
}

double Context::network_steps() const {
  if (shape.islands == 1) return 0;
  return kind == CollectiveKind::all_reduce ? 2.0 * (shape.islands - 1) : shape.islands - 1;
}

double Context::inside_gbps(bool believed) const {
  const Parameters& p = parameters;
  if (shape.wire == Wire::nvlink && environment.p2p)
    return cluster.intra.gbps * p.tuner.link_efficiency;
  double pcie = cluster.nvlink_domain > 1 ? cluster.gpu.pcie_gbps : cluster.intra.gbps;
  // Without peer access every byte passes through host memory.
  double detour = environment.p2p ? 1 : 0.5;
  return pcie * detour * (believed ? p.tuner.pcie_efficiency : p.time.pcie_efficiency);
}

double Context::outside_gbps(bool believed) const {
  // If a group has fewer ranks per island than there are GPUs, other groups like it use the other
  // cards at the same time.
  double share = std::min(1.0, double(shape.most_per_island) / cluster.gpus_per_node);
  double machines = std::max(1.0, double(island_size(cluster)) / cluster.gpus_per_node);
  if (island_size(cluster) > cluster.gpus_per_node)
    share = double(shape.most_per_island) / island_size(cluster);
  double gbps = cluster.nic.gbps * cluster.nics_per_node * machines * share;
  gbps *= believed ? parameters.tuner.nic_efficiency : parameters.time.nic_efficiency;
  if (!believed && shape.spine) gbps /= cluster.oversubscription;
  if (!environment.gpu_direct) gbps *= 0.5;
  return gbps;
}

bool Context::allows(Protocol protocol) const {
  if (protocol == kSimple) return true;
  if (shape.islands > 1 &&
      !(protocol == kLL ? parameters.tuner.net_ll : parameters.tuner.net_ll128))
    return false;
  if (protocol == kLL || environment.ll128_forced) return true;
  return wire() == kNvlink && cluster.gpu.capability_major >= 7;
}

int Context::planned_channels(double total, double* speed) const {
  double best = 0, first = 0;
  int channels = 1;
  *speed = total;
  for (double s : parameters.tuner.speeds) {
    if (s <= 0 || s > total) continue;
    int n = std::min(32, static_cast<int>(total / s + 1e-9));
    if (first == 0) first = s;
    // NCCL continues its search down to half the speed, and prefers more channels with the same
    // total within a machine. Between machines a channel belongs to a card.
    bool same = shape.islands == 1 && s > 0.49 * first && n * s > 0.999 * best;
    if (n * s > best * 1.001 || same) best = n * s, channels = n, *speed = s;
  }
  return channels;
}

std::vector<Candidate> candidates(const Context& context) {
  std::vector<Candidate> all, allowed;
  add_ring(context, all);
  add_tree(context, all);
  add_nvls(context, all);
  add_collnet(context, all);
  add_pat(context, all);
  auto f = static_cast<std::size_t>(context.kind);
  const Environment& e = context.environment;
  for (const Candidate& c : all)
    if (f < 5 && e.algorithm[f][c.algorithm] && e.protocol[f][c.protocol] && c.gbps > 0 &&
        c.tuner_gbps > 0)
      allowed.push_back(c);
  // If the user's variables allow no existing algorithm, NCCL uses ring and simple instead of
  // failing.
  if (allowed.empty())
    for (const Candidate& c : all)
      if (c.algorithm == kRing && c.protocol == kSimple) allowed.push_back(c);
  for (Candidate& c : allowed) {
    // With few channels the speed is limited by what one SM can copy.
    double bus = c.gbps * context.steps() / context.shape.ranks;
    double most = e.most_channels * context.parameters.time.channel_gbps;
    if (c.channels > e.most_channels && bus > most) c.gbps *= most / bus;
    c.channels = std::clamp(c.channels, e.least_channels, e.most_channels);
  }
  return allowed;
}

}  // namespace maya::network
