#include "network/exchange.h"

#include <algorithm>
#include <unordered_map>

namespace maya::network {

Exchange::Exchange(const catalog::Cluster& cluster, const Parameters& parameters,
                   const Environment& environment)
    : cluster_(cluster), time_(parameters.time), environment_(environment) {}

double Exchange::link_gbps(Wire wire) const {
  if (wire == Wire::nvlink && environment_.p2p) return cluster_.intra.gbps * time_.p2p_efficiency;
  double pcie = cluster_.nvlink_domain > 1 ? cluster_.gpu.pcie_gbps : cluster_.intra.gbps;
  return pcie * time_.p2p_pcie_efficiency * (environment_.p2p ? 1 : 0.5);
}

double Exchange::node_gbps() const {
  return cluster_.nic.gbps * cluster_.nics_per_node * time_.p2p_nic_efficiency *
         (environment_.gpu_direct ? 1 : 0.5);
}

double Exchange::card_gbps() const {
  double share = double(cluster_.nics_per_node) / cluster_.gpus_per_node;
  return node_gbps() * std::max(1.0, share) / std::max(1, cluster_.nics_per_node);
}

double Exchange::network_us() const {
  return time_.latency[kNet] * time_.p2p_network_us + cluster_.nic.latency_us;
}

double Exchange::with_fill(double bytes, double gbps) const {
  if (bytes <= 0) return 0;
  double fill = time_.p2p_fill_bytes * bytes / (bytes + time_.p2p_half_bytes);
  return (bytes + fill) / (gbps * 1e3);
}

ExchangeTime Exchange::messages(std::span<const Message> group) const {
  struct Load {
    double out{}, in{}, card_out{}, card_in{};
    int peers{};
  };
  std::unordered_map<int, Load> ranks, nodes;
  ExchangeTime result;
  double worst = 0, local = 0;
  bool network = false;
  int size = island_size(cluster_);
  for (const Message& m : group) {
    double bytes = static_cast<double>(std::max<std::int64_t>(0, m.bytes));
    if (m.from == m.to) {
      local += 2 * bytes / (cluster_.gpu.memory_gbps * 1e3);
      continue;
    }
    Load &from = ranks[m.from], &to = ranks[m.to];
    ++from.peers, ++to.peers;
    if (m.from / size == m.to / size) {
      Wire wire = nvlink_between(cluster_, m.from, m.to) ? Wire::nvlink : Wire::pci;
      // Loads are kept as time on the link, so that loads of different kinds of links can be added.
      double us = with_fill(bytes, link_gbps(wire));
      from.out += us, to.in += us;
    } else {
      network = true;
      if (cluster_.nics_per_node < 1 || cluster_.nic.gbps <= 0) result.reachable = false;
      double over = crosses_spine(cluster_, m.from, m.to) ? cluster_.oversubscription : 1;
      from.card_out += bytes, to.card_in += bytes;
      nodes[m.from / cluster_.gpus_per_node].card_out += bytes * over;
      nodes[m.to / cluster_.gpus_per_node].card_in += bytes * over;
    }
  }
  for (const auto& [rank, load] : ranks) {
    worst = std::max({worst, load.out, load.in});
    if (network && result.reachable)
      worst = std::max(worst, with_fill(std::max(load.card_out, load.card_in), card_gbps()));
    result.peers = std::max(result.peers, load.peers);
  }
  if (network && result.reachable)
    for (const auto& [node, load] : nodes)
      worst = std::max(worst, with_fill(std::max(load.card_out, load.card_in), node_gbps()));
  result.transfer_us = std::max(worst, local);
  result.latency_us = time_.p2p_start_us + time_.p2p_peer_us * std::max(0, result.peers - 1);
  if (network) result.latency_us += network_us();
  return result;
}

ExchangeTime Exchange::all_to_all(const Shape& shape, double bytes) const {
  double n = shape.ranks, inside = shape.most_per_island;
  double near = with_fill(bytes * (inside - 1) / n, link_gbps(shape.wire));
  double far = 0;
  ExchangeTime result;
  if (shape.islands > 1) {
    result.reachable = cluster_.nics_per_node > 0 && cluster_.nic.gbps > 0;
    double out = bytes * (n - inside) / n * (shape.spine ? cluster_.oversubscription : 1);
    // The cards of a machine are shared by all its GPUs, of this group and of groups like it.
    double share = node_gbps() / cluster_.gpus_per_node;
    if (result.reachable) far = with_fill(out, share);
  }
  result.peers = shape.ranks - 1;
  result.transfer_us = std::max(near, far);
  result.latency_us = time_.p2p_start_us + (shape.islands > 1 ? network_us() : 0) +
                      time_.p2p_peer_us * std::max(0.0, n - 2);
  return result;
}

ExchangeTime Exchange::rooted(const Shape& shape, double bytes) const {
  double n = shape.ranks, inside = shape.most_per_island;
  ExchangeTime result;
  double near = with_fill(bytes * (inside - 1) / n, link_gbps(shape.wire)), far = 0;
  if (shape.islands > 1) {
    result.reachable = cluster_.nics_per_node > 0 && cluster_.nic.gbps > 0;
    double in = bytes * (n - inside) / n * (shape.spine ? cluster_.oversubscription : 1);
    if (result.reachable) far = with_fill(in, card_gbps());
  }
  result.peers = shape.ranks - 1;
  result.transfer_us = std::max(near, far);
  result.latency_us = time_.p2p_start_us + (shape.islands > 1 ? network_us() : 0) +
                      time_.p2p_peer_us * std::max(0.0, n - 2);
  return result;
}

}  // namespace maya::network
