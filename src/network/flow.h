// Simulates flows over links in time. Each flow waits for its predecessors, then for its latency,
// then transfers its bytes. Its rate is max-min fair among all active flows and never above its
// cap.
//
// Rates change only when a flow starts or ends, and only within the connected part of links and
// flows around it, so that thousands of GPUs can be simulated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "maya/result.h"
#include "network/max_min.h"

namespace maya::network {

struct Flow {
  double bytes{}, cap{};           // cap in bytes per ns
  const std::vector<Use>* uses{};  // weight: bytes on the link per byte of the flow
  double start_ns{};               // earliest start, relative to the end of its predecessors
  double latency_ns{};
  std::span<const std::int32_t> after;
};

struct Interval {
  double start_ns{}, end_ns{};
};

// Returns an error if a predecessor does not exist or if the predecessors form a cycle.
Result<std::vector<Interval>> simulate(const std::vector<double>& capacities,
                                       std::span<const Flow> flows);

}  // namespace maya::network
