#include "session/virtual_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "session/calls.h"
#include "session/machine.h"

namespace maya::session {
namespace {

static_assert(mapping_granularity == device::Memory::page);

Physical* find(void* handle) { return state().physicals.find(handle); }

std::mutex mapping_mutex;
std::map<std::uint64_t, Physical*> mappings;  // address → what is mapped there

}  // namespace

int reserve_addresses(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t& address) {
  if (int error = touch()) return error;
  if (bytes == 0 || bytes % mapping_granularity != 0) return code::invalid_value;
  address = state().memory.reserve(thread().device, bytes, alignment);
  return address != 0 ? code::success : code::out_of_memory;
}

int free_addresses(std::uint64_t address, std::uint64_t bytes) {
  return state().memory.unreserve(address, bytes) ? code::success : code::invalid_value;
}

int physical_create(std::uint64_t bytes, int device, void*& handle) {
  if (int error = touch()) return error;
  if (bytes == 0 || bytes % mapping_granularity != 0) return code::invalid_value;
  State& s = state();
  if (device != no_device) {
    if (int error = check_device(device)) return error;
    if (!s.memory.take_physical(device, bytes)) {
      s.recorder.record_wide(trace::Kind::out_of_memory,
                             static_cast<std::uint32_t>(MemoryKind::mapped), bytes,
                             static_cast<std::uint32_t>(device));
      return code::out_of_memory;
    }
  }
  return physical_import(bytes, device, handle);
}

int physical_import(std::uint64_t bytes, int device, void*& handle) {
  Physical* made = state().physicals.create();
  if (made == nullptr) return code::out_of_memory;
  made->device = device, made->bytes = bytes;
  handle = made;
  return code::success;
}

int physical_release(void* handle) {
  Physical* physical = find(handle);
  if (physical == nullptr) return code::invalid_value;
  if (--physical->references > 0) return code::success;
  State& s = state();
  if (physical->device >= 0) s.memory.give_physical(physical->device, physical->bytes);
  s.physicals.destroy(physical);
  return code::success;
}

bool valid_physical(void* handle) { return find(handle) != nullptr; }

int physical_properties(void* handle, std::uint64_t& bytes, int& device) {
  const Physical* physical = find(handle);
  if (physical == nullptr) return code::invalid_value;
  bytes = physical->bytes, device = physical->device;
  return code::success;
}

int physical_at(const void* address, void*& handle) {
  auto allocation = state().memory.find(reinterpret_cast<std::uint64_t>(address));
  std::lock_guard guard(mapping_mutex);
  auto it = allocation ? mappings.find(allocation->address) : mappings.end();
  if (it == mappings.end()) return code::invalid_value;
  ++it->second->references;
  handle = it->second;
  return code::success;
}

int map_memory(std::uint64_t address, std::uint64_t bytes, void* handle) {
  Physical* physical = find(handle);
  if (physical == nullptr || bytes == 0) return code::invalid_value;
  State& s = state();
  const bool ours = physical->device != no_device;
  auto allocation = s.memory.map(address, bytes, !ours);
  if (!allocation) return code::invalid_value;
  ++physical->references;  // a mapping keeps the memory alive after cuMemRelease
  {
    std::lock_guard guard(mapping_mutex);
    mappings[address] = physical;
  }
  if (ours)
    s.recorder.record_wide(trace::Kind::allocate, static_cast<std::uint32_t>(MemoryKind::mapped),
                           bytes, allocation->id, static_cast<std::uint16_t>(physical->device));
  return code::success;
}

int unmap_memory(std::uint64_t address, std::uint64_t bytes) {
  State& s = state();
  const std::uint64_t end = address + bytes;
  while (address < end) {
    auto allocation = s.memory.unmap(address);
    if (!allocation) return code::invalid_value;
    s.values.forget(address, allocation->bytes);
    madvise(reinterpret_cast<void*>(address), allocation->bytes, MADV_DONTNEED);
    if (!allocation->elsewhere)
      s.recorder.record_wide(trace::Kind::release, static_cast<std::uint32_t>(MemoryKind::mapped),
                             allocation->bytes, allocation->id);
    Physical* physical = nullptr;
    {
      std::lock_guard guard(mapping_mutex);
      if (auto it = mappings.find(address); it != mappings.end())
        physical = it->second, mappings.erase(it);
    }
    if (physical != nullptr) physical_release(physical);
    address += allocation->bytes;
  }
  return code::success;
}

int export_memory(const void* address, SharedMemory& memory) {
  auto allocation = state().memory.find(reinterpret_cast<std::uint64_t>(address));
  if (!allocation) return code::invalid_value;
  memory = {allocation->address, allocation->bytes, getpid(), physical_device(allocation->device)};
  return code::success;
}

int import_memory(const SharedMemory& memory, void** address) {
  if (int error = touch()) return error;
  if (address == nullptr) return code::invalid_value;
  const std::uint64_t alias = state().memory.alias(thread().device, memory.bytes);
  if (alias == 0) return code::out_of_memory;
  *address = reinterpret_cast<void*>(alias);
  return code::success;
}

int close_imported(void* address) {
  return state().memory.release(reinterpret_cast<std::uint64_t>(address)) ? code::success
                                                                          : code::invalid_value;
}

}  // namespace maya::session
