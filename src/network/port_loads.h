// The load of communications on the ports of one GPU: the weights of the flow-level model
// (traffic.h), as one member sees them.
//
// If several GPUs share a port (a card, a trunk), each has an equal part of its capacity, and only
// the GPU's own part of the traffic is counted. Its neighbours are assumed to do the same as this
// GPU, which the closed form assumes too.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "maya/network.h"
#include "network/topology.h"

namespace maya::network {

class PortLoads {
 public:
  PortLoads(const catalog::Cluster& cluster, const Time& time);

  Ports capacity() const;
  Load collective(const Collective& op, const std::string& algorithm,
                  std::span<const std::int32_t> ranks, std::int32_t at) const;
  Load messages(std::span<const Message> group, std::int32_t at) const;

 private:
  Topology topology_;
  int world_{};
  struct Traffic {
    std::vector<Use> uses;                    // by link
    std::unordered_map<int, double> members;  // how many of the ranks have this link as a port
  };
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<CollectiveKind, std::string, std::vector<std::int32_t>>, Traffic>
      traffic_;
};

}  // namespace maya::network
