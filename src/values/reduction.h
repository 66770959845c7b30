// The arithmetic of reducing collectives: one result of several members' bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/op.h"

namespace maya::values {

// Reduces the members' contributions, in order of rank, each from `offset` on, into `bytes` bytes.
// False: a type without arithmetic here (halves and smaller are gradients; nobody looks at them).
bool reduce_contributions(DType dtype, ReduceOp reduce,
                          const std::vector<std::vector<char>>& contributions, std::uint64_t offset,
                          void* to, std::uint64_t bytes);

}  // namespace maya::values
