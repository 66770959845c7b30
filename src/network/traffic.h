// What a collective puts on which link, for one byte of its size: the weights of one flow that
// stands for all its transfers, which NCCL's pipeline keeps at one pace.
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
