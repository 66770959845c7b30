// The load of a collective on each link per byte of its size. These are the weights of one flow
// that represents all its transfers, because NCCL's pipeline keeps them at the same pace.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "maya/op.h"
#include "network/max_min.h"
#include "network/topology.h"

namespace maya::network {

// `algorithm` as CollectiveTime names it.
std::vector<Use> traffic(const Topology& topology, CollectiveKind kind, std::string_view algorithm,
                         std::span<const std::int32_t> ranks);

}  // namespace maya::network
