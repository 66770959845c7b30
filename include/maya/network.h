// Predicts how long a collective or a point-to-point message takes on a cluster. This is the only
// interface between the simulator and the network model.
//
//   auto network = network::make_network(cluster);
//   auto time = network->collective(Collective{.bytes = 1 << 30}, ranks);
//
// A Network does not change after it is made and may be used from several threads. The predicted
// times are those of an otherwise idle network; load() and port_capacity() let the simulator slow
// down communications that run at the same time.
#pragma once

#include <array>
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
  int channels{};                   // NCCL channels; each takes about one SM away from computation
};

// One message of a group of point-to-point calls. `from` and `to` are ranks of the job.
struct Message {
  std::int32_t from{}, to{};
  std::int64_t bytes{};
};

// The places at which the traffic of a GPU can be limited, each in both directions: its link inside
// the NVLink domain, its share of the network cards of the node, and its share of the connection
// from the leaf switch to the spine.
enum Port : std::uint8_t { link_out, link_in, card_out, card_in, trunk_up, trunk_down };
inline constexpr std::size_t port_count = 6;
using Ports = std::array<double, port_count>;

// The traffic that one communication causes at the ports of one GPU.
struct Load {
  double bytes{};  // size of the communication
  Ports weight{};  // bytes that pass the port per byte of that size
};

class Network {
 public:
  virtual ~Network() = default;
  // `ranks` are the members in communicator order, as ranks of the job. Rank r is placed on node
  // r / gpus_per_node.
  virtual CollectiveTime collective(const Collective& op,
                                    std::span<const std::int32_t> ranks) const = 0;
  virtual CollectiveTime messages(std::span<const Message> group) const = 0;

  // Communications that run at the same time on one GPU share each port max-min fairly
  // (network/max_min.h). Capacities are in bytes per ns; 0 means that the port is not a limit. By
  // default nothing is shared.
  virtual Ports port_capacity() const { return {}; }
  virtual Load load(const Collective&, std::span<const std::int32_t> /*ranks*/,
                    std::int32_t /*at*/) const {
    return {};
  }
  virtual Load load(std::span<const Message>, std::int32_t /*at*/) const { return {}; }
};

// `environment` holds the recorded NCCL_* variables, which may change the choice of algorithm.
std::unique_ptr<Network> make_network(const catalog::Cluster& cluster,
                                      const std::map<std::string, std::string>& environment = {});

}  // namespace maya::network
