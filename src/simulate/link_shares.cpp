#include "simulate/link_shares.h"

#include <algorithm>
#include <cmath>

namespace maya::simulate {

const std::vector<std::uint32_t>& LinkShares::of(const std::vector<std::uint32_t>& times) {
  auto found = known_.find(times);
  if (found == known_.end()) found = known_.emplace(times, solve(times)).first;
  return found->second;
}

std::vector<std::uint32_t> LinkShares::solve(const std::vector<std::uint32_t>& times) {
  std::vector<std::vector<network::Use>> uses(times.size());
  std::vector<network::MaxMin::Flow> flows;
  std::vector<double> alone;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const CommunicationTime& time = times_[times[i]];
    double rate = time.load.bytes / static_cast<double>(time.ns);
    double single = rate;
    for (std::size_t p = 0; p < network::port_count; ++p) {
      double capacity = solver_.capacity(p);
      if (time.load.weight[p] <= 0 || capacity <= 0) continue;
      uses[i].push_back({static_cast<std::int32_t>(p), time.load.weight[p]});
      single = std::min(single, capacity / time.load.weight[p]);
    }
    flows.push_back({uses[i], rate});
    alone.push_back(single);
  }
  solver_.solve(flows);
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < times.size(); ++i) {
    double part = alone[i] > 0 ? flows[i].rate / alone[i] : 1;
    result.push_back(static_cast<std::uint32_t>(
        std::clamp<long>(std::lround(part * one), 1, static_cast<long>(one))));
  }
  return result;
}

}  // namespace maya::simulate
