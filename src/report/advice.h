// The largest costs of a step, and what would help against each.
#pragma once

#include <vector>

#include "report/usage.h"

namespace maya::report {

// Costs are grouped into families (a kind of kernel and its type, a collective, the host) along the
// critical path of one step, since only there time saved is time won; without a critical path, over
// the device time of the ranks. What ranks spend waiting for each other is on no path: it comes
// from the breakdown.
std::vector<LargestCost> largest_costs(const job::Job& job, const simulate::Timeline& timeline,
                                       const catalog::Cluster& cluster,
                                       const std::vector<OpUse>& uses, const BreakdownMs& breakdown,
                                       std::size_t most = 3);

}  // namespace maya::report
