// Integer kernels on known data, computed on the host (DESIGN: "Data-dependent code").
//
// Integers are small and steer the host: sizes, indices, counts, masks. When all inputs of a kernel
// whose meaning is known are known, its outputs are computed and become known; otherwise the
// outputs become unknown. Choosing from unknown scores (top-k, argmax) is answered by a policy:
// balanced; an unknown mask (nonzero) chooses every place.
#pragma once

#include <cstdint>

#include "values/known_bytes.h"
#include "values/semantics.h"

namespace maya::values {

enum class Answer : std::uint8_t { computed, whole_mask };

Answer compute(const Semantics& semantics, KnownBytes& values, std::uint64_t limit);

}  // namespace maya::values
