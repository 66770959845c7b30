// Flows over links in time: each waits for those it comes after, spends its latency, then moves its
// bytes at a rate that is max-min fair among all under way and never above its cap.
//
// Rates change only when a flow starts or ends, and only within the connected part of links and
// flows around it, so thousands of GPUs cost little.
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
  double start_ns{};               // not before, counted from the end of those it comes after
  double latency_ns{};
  std::span<const std::int32_t> after;
};

struct Interval {
  double start_ns{}, end_ns{};
};

// An error for a flow that comes after one that does not exist, or, over others, after itself.
Result<std::vector<Interval>> simulate(const std::vector<double>& capacities,
                                       std::span<const Flow> flows);

}  // namespace maya::network
