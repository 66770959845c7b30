// The placement of a communicator, as far as it matters for the time: the number of ranks and
// islands, and the links between them.
//
// An island is what NCCL calls a node: a set of GPUs that communicate without the network. It is a
// machine, or an NVLink domain that spans several machines (NVL72).
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
  int most_per_island{};    // the largest number of ranks in an island
  Wire wire{Wire::nvlink};  // the slowest link inside an island
  bool spine{};             // its traffic crosses the spine
  bool valid{true};         // every rank has a GPU
  auto operator<=>(const Shape&) const = default;
};

int island_size(const catalog::Cluster& cluster);
// Whether two GPUs of one island are connected by NVLink.
bool nvlink_between(const catalog::Cluster& cluster, int a, int b);
// Whether the traffic of ranks `low` to `high` crosses the spine.
bool crosses_spine(const catalog::Cluster& cluster, int low, int high);
Shape shape_of(const catalog::Cluster& cluster, std::span<const std::int32_t> ranks);

}  // namespace maya::network
