#include "report/memory.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

namespace maya::report {
namespace {

bool on_device(std::uint32_t kind) {
  return kind != static_cast<std::uint32_t>(trace::MemoryKind::pinned) &&
         kind != static_cast<std::uint32_t>(trace::MemoryKind::context);
}

bool several_devices(const trace::Recording& recording) {
  std::optional<std::uint32_t> first;
  for (const trace::Record& record : recording.records) {
    // The id of a default stream is the number of its device.
    const bool made = record.kind == trace::Kind::stream_create;
    const bool used = record.kind == trace::Kind::launch && (record.flags & trace::legacy) != 0;
    if (!made && !used) continue;
    const std::uint32_t device = made ? record.value : record.stream;
    if (first && *first != device) return true;
    first = device;
  }
  return false;
}

}  // namespace

MemoryUse memory_use(const trace::Recording& recording,
                     std::vector<std::pair<std::uint32_t, std::int64_t>>* changes) {
  MemoryUse use;
  std::int64_t live = 0;
  struct Allocation {
    std::int64_t bytes;
    std::uint32_t device;
    bool communicator;
  };
  struct Live {
    std::int64_t program{}, communicators{};
    std::int64_t all() const { return program + communicators; }
    std::int64_t& of(const Allocation& a) { return a.communicator ? communicators : program; }
  };
  // stream_create records have the device of a stream; the id of a default stream is the number of
  // its device. Most processes use one device.
  std::unordered_map<std::uint16_t, std::uint32_t> device_of_stream;
  const bool several = several_devices(recording);
  auto device_of = [&](std::uint16_t stream) {
    if (!several) return std::uint32_t{0};
    auto found = device_of_stream.find(stream);
    return found == device_of_stream.end() ? std::uint32_t{stream} : found->second;
  };
  std::unordered_map<std::uint32_t, Allocation> sizes;     // by allocation
  std::unordered_map<std::uint32_t, Live> live_on_device;  // the result is for the fullest GPU
  trace::Wide wide{};
  for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
    const trace::Record& record = recording.records[i];
    const auto bytes = static_cast<std::int64_t>(
        std::min<std::uint64_t>(wide.y, std::uint64_t{1} << 50));  // avoids overflow
    switch (record.kind) {
      case trace::Kind::wide:
        wide = std::bit_cast<trace::Wide>(record);
        continue;
      case trace::Kind::allocate:
        if (on_device(wide.x)) {
          live += bytes;
          const std::uint32_t device = device_of(record.stream);
          const Allocation& made = sizes[record.value] = {
              bytes, device, wide.x == static_cast<std::uint32_t>(trace::MemoryKind::communicator)};
          Live& there = live_on_device[device];
          there.of(made) += bytes;
          use.peak_bytes = std::max(use.peak_bytes, there.all());
          use.reserved_bytes = std::max(use.reserved_bytes, there.program);
          use.communicator_bytes = std::max(use.communicator_bytes, there.communicators);
          // After a failed allocation PyTorch's allocator releases its cache and tries again.
          if (use.refusal && bytes >= use.refusal->requested_bytes) {
            use.refusal.reset();
            ++use.recovered;
          }
          if (changes) changes->emplace_back(i, live);
        }
        break;
      case trace::Kind::release:
        if (auto found = sizes.find(record.value); found != sizes.end()) {
          live -= found->second.bytes;
          live_on_device[found->second.device].of(found->second) -= found->second.bytes;
          sizes.erase(found);
          if (changes) changes->emplace_back(i, live);
        }
        break;
      case trace::Kind::stream_create:
        device_of_stream[record.stream] = record.value;
        break;
      case trace::Kind::out_of_memory:
        if (auto device = live_on_device.find(several ? record.value : 0);
            device != live_on_device.end())
          use.refusal = Refusal{i, bytes, device->second.all()};
        else
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
