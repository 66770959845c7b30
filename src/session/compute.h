// Integer kernels on known data, computed on the host (DESIGN: "Data-dependent code").
//
// Integers are small and steer the host: sizes, indices, counts, masks. When all inputs of a kernel
// whose meaning is known are known, its outputs are computed and become known; otherwise the
// outputs become unknown. Choosing from unknown scores (top-k, argmax) is answered by a policy:
// balanced; an unknown mask (nonzero) chooses every place.
#pragma once

#include <cstdint>

#include "decode/decode.h"
#include "device/values.h"

namespace maya::session {

enum class Answer : std::uint8_t { computed, whole_mask };

Answer compute(const decode::Semantics& semantics, device::Values& values, std::uint64_t limit);

}  // namespace maya::session
