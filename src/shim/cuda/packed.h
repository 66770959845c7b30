// Kernel arguments in one buffer, described by a list of tags and values: the `extra` of driver
// launches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cuda.h"
#include "session/kernels.h"

namespace maya::shim::cuda {

inline session::PackedArguments packed_arguments(void* const* extra) {
  session::PackedArguments found;
  for (void* const* p = extra; reinterpret_cast<std::uintptr_t>(*p) != abi::kLaunchParamEnd;
       p += 2) {
    if (reinterpret_cast<std::uintptr_t>(p[0]) == abi::kLaunchParamBufferPointer)
      found.buffer = p[1];
    if (reinterpret_cast<std::uintptr_t>(p[0]) == abi::kLaunchParamBufferSize)
      found.bytes = *static_cast<std::size_t*>(p[1]);
  }
  return found;
}

}  // namespace maya::shim::cuda
