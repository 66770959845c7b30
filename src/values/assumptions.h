// What is taken for granted about numbers nobody computed: they are valid.
//
// Training code checks its numbers on the device and reads the verdict: is the loss finite, are
// these probabilities, are the two tensors equal. An unknown number therefore compares like a small
// positive one, all of unknown conditions hold, and none of unknown accidents happened.
#pragma once

#include <optional>

#include "values/operand.h"

namespace maya::values {

// The value of every element of the (first) output, when inputs are unknown; nothing: unknown too.
std::optional<Number> assumed(const Semantics& semantics, KnownBytes& values, std::uint64_t limit);

}  // namespace maya::values
