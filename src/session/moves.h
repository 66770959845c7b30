// Kernels that move elements by index, and those that list places: gather, scatter, nonzero,
// unique.
#pragma once

#include <cstdint>

#include "decode/decode.h"
#include "device/values.h"

namespace maya::session {

// False if the kernel is of another kind.
bool move(const decode::Semantics& semantics, device::Values& values, std::uint64_t limit);

}  // namespace maya::session
