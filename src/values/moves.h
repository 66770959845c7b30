// Kernels that move elements by index, and those that list places: gather, scatter, nonzero,
// unique.
#pragma once

#include <cstdint>

#include "values/known_bytes.h"
#include "values/semantics.h"

namespace maya::values {

// False if the kernel is of another kind.
bool move(const Semantics& semantics, KnownBytes& values, std::uint64_t limit);

}  // namespace maya::values
