#include "network/topology.h"

#include <algorithm>

#include "network/shape.h"

namespace maya::network {

Topology::Topology(const catalog::Cluster& c, const Time& time)
    : gpus_per_node_(c.gpus_per_node),
      island_(island_size(c)),
      groups_(std::max(1, std::min(c.gpus_per_node, c.nics_per_node))),
      rails_(c.rail_optimized) {
  int ranks = c.world_size();
  // The rate of the data sheet. What a collective reaches of it is given by its cap.
  double inside = c.intra.gbps;
  for (int i = 0; i < 2 * ranks; ++i) capacity_.push_back(inside);
  if (c.nics_per_node < 1 || c.nic.gbps <= 0) return;
  double node = c.nic.gbps * c.nics_per_node * time.nic_efficiency;
  first_card_ = static_cast<int>(capacity_.size());
  for (int i = 0; i < 2 * c.nodes * groups_; ++i) capacity_.push_back(node / groups_);
  if (c.oversubscription <= 1) return;
  // With rails a leaf connects the same card group of gpus_per_leaf machines, else whole machines.
  int per_leaf = c.gpus_per_leaf > 0 ? c.gpus_per_leaf : rails_ ? 1 : c.gpus_per_node;
  nodes_per_leaf_ = rails_ ? per_leaf : std::max(1, per_leaf / c.gpus_per_node);
  int blocks = (c.nodes + nodes_per_leaf_ - 1) / nodes_per_leaf_;
  leaves_ = rails_ ? blocks * groups_ : blocks;
  double under = nodes_per_leaf_ * (rails_ ? node / groups_ : node);
  first_trunk_ = static_cast<int>(capacity_.size());
  for (int i = 0; i < 2 * leaves_; ++i) capacity_.push_back(under / c.oversubscription);
}

int Topology::cards_of(int rank) const {
  int local = rank % gpus_per_node_;
  return rank / gpus_per_node_ * groups_ + local * groups_ / gpus_per_node_;
}

int Topology::card_out(int rank) const {
  return first_card_ < 0 ? -1 : first_card_ + 2 * cards_of(rank);
}
int Topology::card_in(int rank) const {
  return first_card_ < 0 ? -1 : first_card_ + 2 * cards_of(rank) + 1;
}

int Topology::leaf(int rank) const {
  int block = rank / gpus_per_node_ / nodes_per_leaf_;
  return rails_ ? block * groups_ + cards_of(rank) % groups_ : block;
}

int Topology::trunk_up(int from, int to) const {
  return first_trunk_ < 0 || leaf(from) == leaf(to) ? -1 : first_trunk_ + 2 * leaf(from);
}
int Topology::trunk_down(int from, int to) const {
  return first_trunk_ < 0 || leaf(from) == leaf(to) ? -1 : first_trunk_ + 2 * leaf(to) + 1;
}

Topology::PortLinks Topology::ports(int rank) const {
  PortLinks p;
  p.link = {gpu_out(rank), gpu_in(rank), card_out(rank), card_in(rank), -1, -1};
  int per_group = std::max(1, gpus_per_node_ / groups_);
  p.sharers = {1, 1, per_group, per_group, 1, 1};
  if (first_trunk_ >= 0) {
    p.link[Port::trunk_up] = first_trunk_ + 2 * leaf(rank);
    p.link[Port::trunk_down] = first_trunk_ + 2 * leaf(rank) + 1;
    p.sharers[Port::trunk_up] = p.sharers[Port::trunk_down] =
        nodes_per_leaf_ * (rails_ ? per_group : gpus_per_node_);
  }
  return p;
}

void Topology::route(int from, int to, double weight, std::vector<Use>& out) const {
  if (from == to) return;
  if (same_island(from, to)) {
    out.push_back({gpu_out(from), weight});
    out.push_back({gpu_in(to), weight});
    return;
  }
  for (int link : {card_out(from), trunk_up(from, to), trunk_down(from, to), card_in(to)})
    if (link >= 0) out.push_back({link, weight});
}

}  // namespace maya::network
