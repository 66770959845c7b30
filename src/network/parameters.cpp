#include "network/parameters.h"

namespace maya::network {

const std::array<const char*, kProtocols> kProtocolNames{"ll", "ll128", "simple"};
const std::array<const char*, kAlgorithms> kAlgorithmNames{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};

Result<Parameters> parameters_of(const std::map<std::string, double>& numbers) {
  static const std::array<const char*, kHardware> hardware{"nvlink", "pci", "net"};
  static const std::array<const char*, 3> nodes{"n1", "n2", "n4"};
  std::string missing;
  auto get = [&](const std::string& key) {
    auto at = numbers.find(key);
    if (at != numbers.end()) return at->second;
    if (missing.empty()) missing = key;
    return 0.0;
  };
  Parameters p;
  Tuner& t = p.tuner;
  for (int pr = 0; pr < kProtocols; ++pr) {
    std::string proto = std::string(".") + kProtocolNames[pr];
    for (int a = 0; a < kAlgorithms; ++a) {
      t.base[a][pr] = get("tuner.base." + std::string(kAlgorithmNames[a]) + proto);
      for (int h = 0; h < kHardware; ++h)
        t.hw[h][a][pr] =
            get(std::string("tuner.hw.") + hardware[h] + "." + kAlgorithmNames[a] + proto);
    }
    for (int i = 0; i < 24; ++i)
      t.tree_correction[pr][i] = get("tuner.tree_correction" + proto + "." + std::to_string(i));
    p.time.ring[pr] = get(std::string("time.efficiency.ring_") + kProtocolNames[pr]);
    p.time.tree[pr] = get(std::string("time.efficiency.tree_") + kProtocolNames[pr]);
  }
  for (std::size_t i = 0; i < t.speeds.size(); ++i)
    t.speeds[i] = get("tuner.speeds." + std::to_string(i));
  for (int n = 0; n < 3; ++n) {
    t.ll_max[n] = get(std::string("tuner.ll_max.") + nodes[n]);
    t.ring_ll128[n] = get(std::string("tuner.channel.ring_ll128.") + nodes[n]);
    t.tree_ll128[n] = get(std::string("tuner.channel.tree_ll128.") + nodes[n]);
    t.tree[n] = get(std::string("tuner.channel.tree.") + nodes[n]);
    t.nvls_tree[n] = get(std::string("tuner.channel.nvls_tree.") + nodes[n]);
  }
  t.ring_plateau = get("tuner.ring_plateau"), t.net_overhead_us = get("tuner.net_overhead_us");
  t.net_latency_us = get("tuner.net_latency_us");
  t.nvls_efficiency = get("tuner.nvls_efficiency"), t.sharp = get("tuner.sharp") > 0;
  t.net_ll = get("tuner.net_ll") > 0, t.net_ll128 = get("tuner.net_ll128") > 0;
  t.link_efficiency = get("tuner.link_efficiency"),
  t.pcie_efficiency = get("tuner.pcie_efficiency");
  t.nic_efficiency = get("tuner.nic_efficiency");
  Time& m = p.time;
  m.start_us = get("time.start_us"), m.nvls_us = get("time.latency.nvls_us");
  m.channel_gbps = get("time.channel_gbps");
  for (int h = 0; h < kHardware; ++h)
    m.latency[h] = get(std::string("time.latency.") + hardware[h]);
  m.nic_efficiency = get("time.nic_efficiency"), m.pcie_efficiency = get("time.pcie_efficiency");
  m.nvls = get("time.efficiency.nvls"), m.nvls_tree = get("time.efficiency.nvls_tree");
  m.collnet = get("time.efficiency.collnet"), m.pat = get("time.efficiency.pat");
  m.short_ring = get("time.short_ring");
  m.fill_ring = get("time.fill_bytes.ring"), m.half_ring = get("time.fill_half_bytes.ring");
  m.fill_tree = get("time.fill_bytes.tree"), m.half_tree = get("time.fill_half_bytes.tree");
  m.fill_nvls = get("time.fill_bytes.nvls"), m.half_nvls = get("time.fill_half_bytes.nvls");
  m.nvls_wide = get("time.efficiency.nvls_wide");
  m.fill_nvls_wide = get("time.fill_bytes.nvls_wide");
  m.fill_nvls_tree = get("time.fill_bytes.nvls_tree");
  m.half_nvls_tree = get("time.fill_half_bytes.nvls_tree");
  m.p2p_start_us = get("time.p2p.start_us"), m.p2p_efficiency = get("time.p2p.nvlink_efficiency");
  m.p2p_network_us = get("time.p2p.network_us");
  m.p2p_pcie_efficiency = get("time.p2p.pcie_efficiency");
  m.p2p_nic_efficiency = get("time.p2p.nic_efficiency");
  m.p2p_fill_bytes = get("time.p2p.fill_bytes"), m.p2p_half_bytes = get("time.p2p.half_bytes");
  m.p2p_peer_us = get("time.p2p.peer_us");
  m.spread_latency = get("time.spread.latency"), m.spread_bandwidth = get("time.spread.bandwidth");
  if (!missing.empty())
    return Error{"the network model's number '" + missing +
                 "' is missing; it belongs into catalog/network/nccl.toml"};
  return p;
}

}  // namespace maya::network
