#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "session/calls.h"
#include "session/host_memory.h"

namespace maya::session {
namespace {

void record_allocation(trace::Kind kind, const device::Allocation& a, std::uint16_t stream = 0,
                       std::uint8_t flags = 0) {
  // Without a stream: the default stream of the memory's device, whose id is the device's number.
  if (stream == 0) stream = static_cast<std::uint16_t>(a.device);
  state().recorder.record_wide(kind, static_cast<std::uint32_t>(a.kind), a.bytes, a.id, stream,
                               flags);
}

int refuse(std::uint64_t bytes, device::MemoryKind kind) {
  State& s = state();
  s.recorder.record_wide(trace::Kind::out_of_memory, static_cast<std::uint32_t>(kind), bytes,
                         static_cast<std::uint32_t>(thread().device));
  return code::out_of_memory;
}

// Freed pages give their values back to the host.
void drop_values(const device::Allocation& a) {
  State& s = state();
  s.values.forget(a.address, std::max<std::uint64_t>(a.bytes, 1));
  constexpr std::uint64_t host_page = 4096;
  std::uint64_t begin = (a.address + host_page - 1) / host_page * host_page,
                end = (a.address + a.bytes) / host_page * host_page;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

int allocate(void** address, std::uint64_t bytes, device::MemoryKind kind) {
  if (int error = touch()) return error;
  if (address == nullptr) return code::invalid_value;
  if (int error = check_unsafe()) return error;
  if (bytes == 0) {
    *address = nullptr;
    return code::success;
  }
  return take(address, bytes, kind);
}

int take(void** address, std::uint64_t bytes, device::MemoryKind kind) {
  auto allocation = state().memory.allocate(thread().device, bytes, kind);
  if (!allocation) return refuse(bytes, kind);
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

int allocate_async(void** address, std::uint64_t bytes, Pool* pool, void* stream_handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  if (address == nullptr) return code::invalid_value;
  State& s = state();
  if (bytes == 0) {
    *address = nullptr;
    return code::success;
  }
  if (pool == nullptr) pool = s.current_pools[static_cast<std::size_t>(stream->device)];
  auto allocation = s.memory.allocate(pool->device, bytes, device::MemoryKind::pool);
  if (!allocation) return refuse(bytes, device::MemoryKind::pool);
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved = std::max(pool->reserved, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  if (stream->capture != nullptr) {
    Node* node = capture_node(*stream, NodeType::mem_alloc, {});
    if (node != nullptr) node->address = allocation->address, node->bytes = bytes;
  } else {
    record_allocation(trace::Kind::allocate, *allocation, stream->id, trace::Flag::async);
  }
  *address = reinterpret_cast<void*>(allocation->address);
  return code::success;
}

int release_async(void* address, void* stream_handle) {
  Stream* stream = nullptr;
  if (int error = find_stream(stream_handle, stream)) return error;
  if (address == nullptr) return code::invalid_value;
  State& s = state();
  if (stream->capture != nullptr) {
    Node* node = capture_node(*stream, NodeType::mem_free, {});
    if (node != nullptr) node->address = reinterpret_cast<std::uint64_t>(address);
    return code::success;  // the memory belongs to the graph
  }
  auto allocation = s.memory.release(reinterpret_cast<std::uint64_t>(address));
  if (!allocation) return code::invalid_value;
  drop_values(*allocation);
  Pool* pool = s.default_pools[static_cast<std::size_t>(allocation->device)];
  pool->used -= std::min(pool->used, allocation->bytes);
  record_allocation(trace::Kind::release, *allocation, stream->id, trace::Flag::async);
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
  s.recorder.record_wide(trace::Kind::allocate,
                         static_cast<std::uint32_t>(trace::MemoryKind::pinned), bytes, 0);
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
  s.recorder.record_wide(trace::Kind::release,
                         static_cast<std::uint32_t>(trace::MemoryKind::pinned), bytes, 0);
  return code::success;
}

int register_host(void* address, std::uint64_t bytes) {
  if (int error = touch()) return error;
  if (address == nullptr || bytes == 0 || !mapped(address, bytes)) return code::invalid_value;
  State& s = state();
  constexpr int already_registered = 712;
  std::unique_lock guard(s.pinned_mutex);
  return s.pinned.emplace(reinterpret_cast<std::uint64_t>(address), bytes).second
             ? code::success
             : already_registered;
}

int unregister_host(void* address) {
  if (int error = ready()) return error;
  State& s = state();
  constexpr int not_registered = 713;
  std::unique_lock guard(s.pinned_mutex);
  return s.pinned.erase(reinterpret_cast<std::uint64_t>(address)) ? code::success : not_registered;
}

bool is_pinned(const void* address, std::uint64_t* base, std::uint64_t* bytes) {
  State& s = state();
  std::shared_lock guard(s.pinned_mutex);
  auto value = reinterpret_cast<std::uint64_t>(address);
  auto it = s.pinned.upper_bound(value);
  if (it == s.pinned.begin()) return false;
  auto [start, size] = *std::prev(it);
  if (value - start >= size) return false;
  if (base != nullptr) *base = start;
  if (bytes != nullptr) *bytes = size;
  return true;
}

Where where(const void* address) {
  State& s = state();
  auto value = reinterpret_cast<std::uint64_t>(address);
  if (s.memory.owns(value)) {
    auto allocation = s.memory.find(value);
    return allocation && allocation->kind == device::MemoryKind::managed ? Where::managed
                                                                         : Where::device;
  }
  return is_pinned(address) ? Where::pinned : Where::pageable;
}

}  // namespace maya::session
