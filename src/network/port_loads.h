// What communications put on the ports of one GPU: the same weights as the flow-level model
// (traffic.h), seen from one member.
//
// Ports that several GPUs share (a card, a trunk) count as the GPU's equal part of them, and of a
// collective's traffic there only the GPU's own part: its neighbours are taken to do as it does,
// which is what the closed form assumes too.
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
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<CollectiveKind, std::string, std::vector<std::int32_t>>,
                   std::vector<Use>>
      traffic_;
};

}  // namespace maya::network
