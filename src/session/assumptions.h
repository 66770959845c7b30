// What is taken for granted about numbers nobody computed: they are valid.
//
// Training code checks its numbers on the device and reads the verdict: is the loss finite, are
// these probabilities, are the two tensors equal. An unknown number therefore compares like a small
// positive one, all of unknown conditions hold, and none of unknown accidents happened.
#pragma once

#include <optional>

#include "session/operand.h"

namespace maya::session {

// The value of every element of the (first) output, when inputs are unknown; nothing: unknown too.
std::optional<Number> assumed(const decode::Semantics& semantics, device::Values& values,
                              std::uint64_t limit);

// "eq", "lt", … as a truth value; nothing for other functions.
std::optional<bool> compare(const std::string& function, Number a, Number b);

}  // namespace maya::session
