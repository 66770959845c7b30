// How long a collective or a message takes on a cluster. The simulator knows only this.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "maya/catalog.h"
#include "maya/estimate.h"
#include "maya/op.h"

namespace maya::network {

struct CollectiveTime {
  double ns{}, low_ns{}, high_ns{};
  estimate::Origin origin{estimate::Origin::first_principles};
  std::string algorithm, protocol;  // "ring", "tree", "nvls", …; "ll", "ll128", "simple"
  int channels{};                   // ≈ SMs taken from computation
};

// One message of a group of point-to-point calls; ranks are of the whole job.
struct Message {
  std::int32_t from{}, to{};
  std::int64_t bytes{};
};

class Network {
 public:
  virtual ~Network() = default;
  // `ranks`: the members, as ranks of the job, in communicator order; placement is rank / gpus_per_node.
  virtual CollectiveTime collective(const Collective& op, std::span<const std::int32_t> ranks) const = 0;
  virtual CollectiveTime messages(std::span<const Message> group) const = 0;
};

// `environment`: recorded NCCL_* variables that change the choice of algorithm.
std::unique_ptr<Network> make_network(const catalog::Cluster& cluster,
                                      const std::map<std::string, std::string>& environment = {});

}  // namespace maya::network
