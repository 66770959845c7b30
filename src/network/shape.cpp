#include "network/shape.h"

#include <algorithm>
#include <vector>

namespace maya::network {

int island_size(const catalog::Cluster& cluster) {
  return std::max(cluster.gpus_per_node, cluster.nvlink_domain);
}

bool nvlink_between(const catalog::Cluster& cluster, int a, int b) {
  int domain = std::max(1, cluster.nvlink_domain);
  return domain > 1 && a / domain == b / domain;
}

bool crosses_spine(const catalog::Cluster& cluster, int low, int high) {
  // A leaf switch connects gpus_per_leaf GPUs: those of neighbouring nodes or, with rails, one GPU
  // of each node.
  int leaf = cluster.gpus_per_leaf;
  if (cluster.rail_optimized && leaf > 0) leaf *= cluster.gpus_per_node;
  return leaf <= 0 || low / leaf != high / leaf;
}

Shape shape_of(const catalog::Cluster& cluster, std::span<const std::int32_t> ranks) {
  Shape shape;
  shape.ranks = static_cast<int>(ranks.size());
  int size = island_size(cluster), domain = std::max(1, cluster.nvlink_domain);
  std::vector<int> islands;
  islands.reserve(ranks.size());
  int low = INT32_MAX, high = 0;
  bool crosses = false;
  for (std::int32_t rank : ranks) {
    if (rank < 0 || rank >= cluster.world_size()) shape.valid = false;
    islands.push_back(rank / size);
    low = std::min(low, rank), high = std::max(high, rank);
  }
  // Within an island, ranks of different NVLink domains communicate over PCIe.
  if (domain < size) {
    std::vector<std::pair<int, int>> seen;
    for (std::int32_t rank : ranks) seen.emplace_back(rank / size, rank / domain);
    std::sort(seen.begin(), seen.end());
    for (std::size_t i = 1; i < seen.size(); ++i)
      crosses |= seen[i].first == seen[i - 1].first && seen[i].second != seen[i - 1].second;
    crosses |= domain == 1;
  }
  shape.wire = crosses ? Wire::pci : Wire::nvlink;
  std::sort(islands.begin(), islands.end());
  for (std::size_t i = 0; i < islands.size();) {
    std::size_t j = i;
    while (j < islands.size() && islands[j] == islands[i]) ++j;
    shape.most_per_island = std::max(shape.most_per_island, static_cast<int>(j - i));
    ++shape.islands, i = j;
  }
  if (shape.islands > 1) {
    shape.spine = crosses_spine(cluster, low, high);
  }
  return shape;
}

}  // namespace maya::network
