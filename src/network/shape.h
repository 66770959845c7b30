// What matters of a communicator's placement: how many ranks, in how many islands, over which
// links.
//
// An island is what NCCL calls a node: the GPUs that reach each other without the network. It is a
// machine, or an NVLink domain that spans machines (NVL72).
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "maya/catalog.h"

namespace maya::network {

enum class Wire : std::uint8_t { nvlink, pci };

struct Shape {
  int ranks{};
  int islands{};
  int most_per_island{};    // ranks of the fullest island
  Wire wire{Wire::nvlink};  // the weakest link inside an island
  bool spine{};             // leaves its leaf switch
  bool valid{true};         // every rank has a GPU
  auto operator<=>(const Shape&) const = default;
};

int island_size(const catalog::Cluster& cluster);
// True when two GPUs of one island are joined by NVLink.
bool nvlink_between(const catalog::Cluster& cluster, int a, int b);
// The traffic of ranks from `low` to `high` leaves its leaf switch.
bool crosses_spine(const catalog::Cluster& cluster, int low, int high);
Shape shape_of(const catalog::Cluster& cluster, std::span<const std::int32_t> ranks);

}  // namespace maya::network
