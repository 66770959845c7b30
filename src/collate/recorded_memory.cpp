#include "collate/recorded_memory.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace maya::collate {

using trace::Kind;
using trace::Record;

bool takes_device_memory(const std::vector<Record>& records, std::size_t i) {
  return records[i].kind == Kind::allocate && i > 0 && records[i - 1].kind == Kind::wide &&
         std::bit_cast<trace::Wide>(records[i - 1]).x ==
             static_cast<std::uint32_t>(trace::MemoryKind::device);
}

bool gives_device_memory(const std::vector<Record>& records, std::size_t i) {
  return records[i].kind == Kind::release && i > 0 && records[i - 1].kind == Kind::wide &&
         std::bit_cast<trace::Wide>(records[i - 1]).x ==
             static_cast<std::uint32_t>(trace::MemoryKind::device);
}

std::uint64_t peak_memory(const trace::Recording& recording) {
  std::uint64_t live = 0, peak = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> bytes;
  for (std::size_t i = 1; i < recording.records.size(); ++i) {
    const Record &r = recording.records[i], &before = recording.records[i - 1];
    if (r.kind == Kind::allocate && before.kind == Kind::wide) {
      const auto wide = std::bit_cast<trace::Wide>(before);
      if (wide.x == static_cast<std::uint32_t>(trace::MemoryKind::pinned)) continue;
      bytes[r.value] = wide.y;
      peak = std::max(peak, live += wide.y);
    } else if (r.kind == Kind::release) {
      if (const auto found = bytes.find(r.value); found != bytes.end()) {
        live -= found->second;
        bytes.erase(found);
      }
    }
  }
  return peak;
}

}  // namespace maya::collate
