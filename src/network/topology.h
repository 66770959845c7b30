// The links of a cluster and the route from one GPU to another.
//
// Each GPU has a link inside its island, in both directions. Each machine has card groups, in both
// directions; every GPU uses one group (several cards of one GPU are one group, and so is one card
// that several GPUs share). Each leaf switch has a trunk to the spine, up and down, if the spine is
// oversubscribed.
#pragma once

#include <vector>

#include "maya/catalog.h"
#include "maya/network.h"
#include "network/max_min.h"
#include "network/parameters.h"

namespace maya::network {

class Topology {
 public:
  Topology(const catalog::Cluster& cluster, const Time& time);

  const std::vector<double>& capacities() const { return capacity_; }  // bytes per ns = GB/s
  int gpu_out(int rank) const { return 2 * rank; }
  int gpu_in(int rank) const { return 2 * rank + 1; }
  // -1 without a network.
  int card_out(int rank) const;
  int card_in(int rank) const;
  int cards_of(int rank) const;  // the number of the card group within the cluster
  // The trunks between the leaf switches of two ranks; -1 if both are on the same leaf or if trunks
  // are not a limit.
  int trunk_up(int from, int to) const;
  int trunk_down(int from, int to) const;
  bool same_island(int a, int b) const { return a / island_ == b / island_; }

  // The links of a GPU's ports (-1: none), and the number of GPUs that share each.
  struct PortLinks {
    std::array<int, port_count> link;
    std::array<int, port_count> sharers;
  };
  PortLinks ports(int rank) const;

  void route(int from, int to, double weight, std::vector<Use>& out) const;

 private:
  int leaf(int rank) const;

  int gpus_per_node_, island_, groups_, leaves_{}, first_card_{-1}, first_trunk_{-1};
  int nodes_per_leaf_{};
  bool rails_{};
  std::vector<double> capacity_;
};

}  // namespace maya::network
