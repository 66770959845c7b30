// Which bytes a kind of work moves, in the terms of the memory model.
#pragma once

#include <optional>

#include "estimate/memory_model.h"
#include "maya/op.h"

namespace maya::estimate {

struct MemoryOp {
  MemoryFamily family;
  MemoryShape shape;
};

// nullopt: not a kind the memory model covers (matrix products, attention, transfers).
std::optional<MemoryOp> memory_op(const Op& op);

}  // namespace maya::estimate
