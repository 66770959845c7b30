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
  std::int64_t peak_bytes{};  // live device allocations, communicators included, not the context
  std::int64_t reserved_bytes{};      // the peak of what the program itself took
  std::int64_t communicator_bytes{};  // the peak of what communicators took
  std::optional<Refusal> refusal;     // the out-of-memory the program did not recover from
  std::uint32_t recovered{};          // refusals after which the same request went through
};

// `changes`, when given, receives (record index, live bytes) after each allocation and release.
MemoryUse memory_use(const trace::Recording& recording,
                     std::vector<std::pair<std::uint32_t, std::int64_t>>* changes = nullptr);

}  // namespace maya::report
