#include "report/memory.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace maya::report {
namespace {

bool on_device(std::uint32_t kind) {
  return kind != static_cast<std::uint32_t>(trace::MemoryKind::pinned) &&
         kind != static_cast<std::uint32_t>(trace::MemoryKind::context);
}

}  // namespace

MemoryUse memory_use(const trace::Recording& recording,
                     std::vector<std::pair<std::uint32_t, std::int64_t>>* changes) {
  MemoryUse use;
  std::int64_t live = 0;
  std::unordered_map<std::uint32_t, std::int64_t> sizes;  // by allocation
  trace::Wide wide{};
  for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
    const trace::Record& record = recording.records[i];
    const auto bytes = static_cast<std::int64_t>(
        std::min<std::uint64_t>(wide.y, std::uint64_t{1} << 50));  // a hostile size cannot overflow
    switch (record.kind) {
      case trace::Kind::wide:
        wide = std::bit_cast<trace::Wide>(record);
        continue;
      case trace::Kind::allocate:
        if (on_device(wide.x)) {
          live += bytes;
          sizes[record.value] = bytes;
          use.peak_bytes = std::max(use.peak_bytes, live);
          // PyTorch's allocator answers a refusal by giving back its cache and asking again.
          if (use.refusal && bytes >= use.refusal->requested_bytes) {
            use.refusal.reset();
            ++use.recovered;
          }
          if (changes) changes->emplace_back(i, live);
        }
        break;
      case trace::Kind::release:
        if (auto found = sizes.find(record.value); found != sizes.end()) {
          live -= found->second;
          sizes.erase(found);
          if (changes) changes->emplace_back(i, live);
        }
        break;
      case trace::Kind::out_of_memory:
        use.refusal = Refusal{i, bytes, live};
        break;
      default:
        break;
    }
    wide = {};
  }
  return use;
}

}  // namespace maya::report
