// Device memory of a class over its recording.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "maya/trace.h"

namespace maya::report {

struct Refusal {
  std::uint32_t record{};
  std::int64_t requested_bytes{}, in_use_bytes{};
};

struct MemoryUse {
  std::int64_t peak_bytes{};      // live device allocations with communicators, without the context
  std::int64_t reserved_bytes{};  // peak of the program's own allocations
  std::int64_t communicator_bytes{};  // peak of the memory of communicators
  std::optional<Refusal> refusal;     // a failed allocation that the program did not recover from
  std::uint32_t recovered{};          // failed allocations that succeeded when tried again
};

// `changes`, if given, receives (record index, live bytes) after each allocation and release.
MemoryUse memory_use(const trace::Recording& recording,
                     std::vector<std::pair<std::uint32_t, std::int64_t>>* changes = nullptr);

}  // namespace maya::report
