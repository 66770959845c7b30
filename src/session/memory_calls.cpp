#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>

#include "session/calls.h"
#include "session/host_memory.h"

namespace maya::session {

void record_allocation(trace::Kind kind, const device::Allocation& a, std::uint16_t stream,
                       std::uint8_t flags) {
  // Without a stream: the default stream of the memory's device, whose id is the device's number.
  if (stream == 0) stream = static_cast<std::uint16_t>(a.device);
  state().recorder.record_wide(kind, static_cast<std::uint32_t>(a.kind), a.bytes, a.id, stream,
                               flags);
}

int refuse_memory(std::uint64_t bytes, MemoryKind kind) {
  State& s = state();
  s.recorder.record_wide(trace::Kind::out_of_memory, static_cast<std::uint32_t>(kind), bytes,
                         static_cast<std::uint32_t>(thread().device));
  return code::out_of_memory;
}

void drop_values(const device::Allocation& a) {
  State& s = state();
  s.values.forget(a.address, std::max<std::uint64_t>(a.bytes, 1));
  constexpr std::uint64_t host_page = 4096;
  std::uint64_t begin = (a.address + host_page - 1) / host_page * host_page,
                end = (a.address + a.bytes) / host_page * host_page;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

int allocate(void** address, std::uint64_t bytes, MemoryKind kind) {
  if (int error = touch()) return error;
  if (address == nullptr) return code::invalid_value;
  if (int error = check_unsafe()) return error;
  if (bytes == 0) {
    *address = nullptr;
    return code::success;
  }
  return take(address, bytes, kind);
}

int take(void** address, std::uint64_t bytes, MemoryKind kind) {
  auto allocation = state().memory.allocate(thread().device, bytes, kind);
  if (!allocation) return refuse_memory(bytes, kind);
  record_allocation(trace::Kind::allocate, *allocation);
  *address = reinterpret_cast<void*>(allocation->address);
  return code::success;
}

int release(void* address) {
  if (int error = ready()) return error;
  if (address == nullptr) return code::success;
  if (int error = check_unsafe()) return error;
  State& s = state();
  auto allocation = s.memory.release(reinterpret_cast<std::uint64_t>(address));
  if (!allocation) return code::invalid_value;
  drop_values(*allocation);
  record_allocation(trace::Kind::release, *allocation);
  return code::success;
}

int allocate_host(void** address, std::uint64_t bytes) {
  if (int error = touch()) return error;
  if (address == nullptr) return code::invalid_value;
  State& s = state();
  // Pinned memory is real memory, here as there.
  static const std::uint64_t memory = [] {
    struct sysinfo info {};
    return sysinfo(&info) == 0 ? (std::uint64_t{info.totalram} + info.totalswap) * info.mem_unit
                               : ~std::uint64_t{0};
  }();
  if (bytes > memory) return code::out_of_memory;
  void* map = mmap(nullptr, std::max<std::uint64_t>(bytes, 1), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return code::out_of_memory;
  {
    std::unique_lock guard(s.pinned_mutex);
    s.pinned[reinterpret_cast<std::uint64_t>(map)] = std::max<std::uint64_t>(bytes, 1);
  }
  s.recorder.record_wide(trace::Kind::allocate, static_cast<std::uint32_t>(MemoryKind::pinned),
                         bytes, 0);
  *address = map;
  return code::success;
}

int release_host(void* address) {
  if (int error = ready()) return error;
  if (address == nullptr) return code::success;
  State& s = state();
  std::uint64_t bytes = 0;
  {
    std::unique_lock guard(s.pinned_mutex);
    auto it = s.pinned.find(reinterpret_cast<std::uint64_t>(address));
    if (it == s.pinned.end()) return code::invalid_value;
    bytes = it->second;
    s.pinned.erase(it);
  }
  munmap(address, bytes);
  s.recorder.record_wide(trace::Kind::release, static_cast<std::uint32_t>(MemoryKind::pinned),
                         bytes, 0);
  return code::success;
}

int register_host(void* address, std::uint64_t bytes) {
  if (int error = touch()) return error;
  if (address == nullptr || bytes == 0 || !mapped(address, bytes)) return code::invalid_value;
  State& s = state();
  std::unique_lock guard(s.pinned_mutex);
  return s.pinned.emplace(reinterpret_cast<std::uint64_t>(address), bytes).second
             ? code::success
             : code::host_memory_already_registered;
}

int unregister_host(void* address) {
  if (int error = ready()) return error;
  State& s = state();
  std::unique_lock guard(s.pinned_mutex);
  return s.pinned.erase(reinterpret_cast<std::uint64_t>(address))
             ? code::success
             : code::host_memory_not_registered;
}

bool pinned_range(const void* address, std::uint64_t& base, std::uint64_t& bytes) {
  State& s = state();
  std::shared_lock guard(s.pinned_mutex);
  auto value = reinterpret_cast<std::uint64_t>(address);
  auto it = s.pinned.upper_bound(value);
  if (it == s.pinned.begin()) return false;
  auto [start, size] = *std::prev(it);
  if (value - start >= size) return false;
  base = start, bytes = size;
  return true;
}

bool is_pinned(const void* address) {
  std::uint64_t base = 0, bytes = 0;
  return pinned_range(address, base, bytes);
}

Where where(const void* address) {
  State& s = state();
  auto value = reinterpret_cast<std::uint64_t>(address);
  if (s.memory.owns(value)) {
    auto allocation = s.memory.find(value);
    return allocation && allocation->kind == MemoryKind::managed ? Where::managed : Where::device;
  }
  return is_pinned(address) ? Where::pinned : Where::pageable;
}

Pointer pointer(const void* address) {
  Pointer p;
  p.where = where(address);
  if (p.where == Where::pinned) {
    p.allocated = pinned_range(address, p.base, p.bytes);
  } else if (p.where != Where::pageable) {
    const auto value = reinterpret_cast<std::uint64_t>(address);
    p.device = state().memory.device_of(value);
    if (auto found = state().memory.find(value)) {
      p.allocated = true;
      p.base = found->address, p.bytes = found->bytes, p.id = found->id, p.device = found->device;
    }
  }
  return p;
}

int memory_info(std::size_t* free, std::size_t* total) {
  if (int error = touch()) return error;
  const auto& memory = state().memory;
  if (free != nullptr) *free = memory.free_bytes(thread().device);
  if (total != nullptr) *total = memory.total(thread().device);
  return code::success;
}

std::uint64_t memory_total(int device) { return state().memory.total(device); }

std::uint64_t memory_used(int device) { return state().memory.used(device); }

}  // namespace maya::session
