// A second simulator, slow and simple, to check the fast one.
//
// It has no lanes, tickets, folding or events. Work is a list of nodes with explicit predecessors,
// and time advances by one nanosecond at a time. Every rank must be its own class.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/simulate.h"

namespace maya::testing {

struct SlowSpan {
  std::uint32_t rank{}, record{};
  std::int64_t issue{}, start{}, end{};
  auto operator<=>(const SlowSpan&) const = default;
};

struct SlowResult {
  std::vector<SlowSpan> spans;                        // sorted
  std::vector<std::vector<std::int64_t>> boundaries;  // per rank: times of the step boundaries
  std::vector<simulate::Breakdown> breakdown;         // per rank, summed over all steps
  bool finished{};
};

SlowResult simulate_slowly(const job::Job& job, const catalog::Cluster& cluster,
                           const estimate::Estimator& estimator, const network::Network& network);

}  // namespace maya::testing
