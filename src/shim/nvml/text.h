// Strings into a caller's buffer, as NVML documents it.
#pragma once

#include <cstring>
#include <string_view>

#include "abi/nvml.h"

namespace maya::shim::nvml {

inline abi::nvmlReturn_t give_text(std::string_view from, char* to, unsigned size) {
  if (!to) return abi::NVML_ERROR_INVALID_ARGUMENT;
  if (from.size() + 1 > size) return abi::NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(to, from.data(), from.size());
  to[from.size()] = 0;
  return abi::NVML_SUCCESS;
}

}  // namespace maya::shim::nvml
