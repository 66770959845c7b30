// The largest costs of a step, each with advice how to reduce it.
#pragma once

#include <vector>

#include "report/usage.h"

namespace maya::report {

// Costs are grouped into families: a kind of kernel and its type, a collective, the host. They are
// summed along the critical path of one step, because only time on that path shortens the step when
// it is saved. Without a critical path the device time of the ranks is used. Time that ranks spend
// waiting for each other is not on the path; it comes from the breakdown.
std::vector<LargestCost> largest_costs(const job::Job& job, const simulate::Timeline& timeline,
                                       const catalog::Cluster& cluster,
                                       const std::vector<OpUse>& uses, const BreakdownMs& breakdown,
                                       std::size_t most = 3);

}  // namespace maya::report
