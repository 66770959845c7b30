// The parameters in catalog/network/*.toml, in the form in which the algorithms use them.
#pragma once

#include <array>
#include <map>
#include <string>

#include "maya/result.h"

namespace maya::network {

enum Protocol { kLL, kLL128, kSimple, kProtocols };
enum Algorithm { kTree, kRing, kCollnetDirect, kCollnetChain, kNvls, kNvlsTree, kPat, kAlgorithms };
enum Hardware { kNvlink, kPci, kNet, kHardware };

extern const std::array<const char*, kProtocols> kProtocolNames;
extern const std::array<const char*, kAlgorithms> kAlgorithmNames;

using ByProtocol = std::array<double, kProtocols>;
using ByNodes = std::array<double, 3>;  // one node, two, more

// The assumptions of NCCL's tuner, which decide the choice of the algorithm.
struct Tuner {
  std::array<ByProtocol, kAlgorithms> base{};
  std::array<std::array<ByProtocol, kAlgorithms>, kHardware> hw{};
  std::array<std::array<double, 24>, kProtocols> tree_correction{};
  std::array<double, 13> speeds{};  // possible speeds of a channel in GB/s, descending
  ByNodes ll_max{}, ring_ll128{}, tree_ll128{}, tree{}, nvls_tree{};
  double ring_plateau{}, net_overhead_us{}, net_latency_us{}, nvls_efficiency{};
  double link_efficiency{}, pcie_efficiency{}, nic_efficiency{};
  bool sharp{}, net_ll{}, net_ll128{};
};

// Values fitted to measurements, which decide the time.
struct Time {
  double start_us{}, nvls_us{}, channel_gbps{};
  std::array<double, kHardware> latency{};  // factor on Tuner::hw
  double nic_efficiency{}, pcie_efficiency{};
  ByProtocol ring{}, tree{};  // efficiency
  double nvls{}, nvls_wide{}, nvls_tree{}, collnet{}, pat{}, short_ring{};
  double fill_ring{}, fill_tree{}, fill_nvls{}, fill_nvls_wide{}, fill_nvls_tree{};
  double half_ring{}, half_tree{}, half_nvls{}, half_nvls_tree{};
  double p2p_start_us{}, p2p_network_us{}, p2p_efficiency{}, p2p_pcie_efficiency{},
      p2p_nic_efficiency{};
  double p2p_fill_bytes{}, p2p_half_bytes{}, p2p_peer_us{};
  double spread_latency{}, spread_bandwidth{};
};

struct Parameters {
  Tuner tuner;
  Time time;
};

// The error names the first missing key.
Result<Parameters> parameters_of(const std::map<std::string, double>& numbers);

}  // namespace maya::network
