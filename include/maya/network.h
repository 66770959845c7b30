// How long a collective or a message takes on a cluster. The simulator knows only this.
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
  int channels{};                   // ≈ SMs taken from computation
};

// One message of a group of point-to-point calls; ranks are of the whole job.
struct Message {
  std::int32_t from{}, to{};
  std::int64_t bytes{};
};

// Where a GPU's traffic passes: its link inside the island, its share of the machine's cards, its
// share of the leaf switch's trunk to the spine; each out and in.
enum Port : std::uint8_t { link_out, link_in, card_out, card_in, trunk_up, trunk_down };
inline constexpr std::size_t port_count = 6;
using Ports = std::array<double, port_count>;

// What one communication puts on the ports of one GPU.
struct Load {
  double bytes{};  // of the whole communication
  Ports weight{};  // bytes through the port for each of those
};

class Network {
 public:
  virtual ~Network() = default;
  // `ranks`: the members, as ranks of the job, in communicator order; placement is rank /
  // gpus_per_node.
  virtual CollectiveTime collective(const Collective& op,
                                    std::span<const std::int32_t> ranks) const = 0;
  virtual CollectiveTime messages(std::span<const Message> group) const = 0;

  // For what runs at the same time on one GPU: each port is shared max-min fairly (max_min.h).
  // Bytes per ns; 0: the port does not limit. A network that does not say shares nothing.
  virtual Ports port_capacity() const { return {}; }
  virtual Load load(const Collective&, std::span<const std::int32_t> /*ranks*/,
                    std::int32_t /*at*/) const {
    return {};
  }
  virtual Load load(std::span<const Message>, std::int32_t /*at*/) const { return {}; }
};

// `environment`: recorded NCCL_* variables that change the choice of algorithm.
std::unique_ptr<Network> make_network(const catalog::Cluster& cluster,
                                      const std::map<std::string, std::string>& environment = {});

}  // namespace maya::network
