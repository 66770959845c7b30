// Virtual memory management: addresses, physical memory and the mapping between them; memory that
// processes share.
#pragma once

#include "session/session.h"

namespace maya::session {

// Sizes are multiples of this (cuMemGetAllocationGranularity).
inline constexpr std::uint64_t mapping_granularity = std::uint64_t{2} << 20;

MAYA_EXPORT int reserve_addresses(std::uint64_t bytes, std::uint64_t alignment,
                                  std::uint64_t& address);
MAYA_EXPORT int free_addresses(std::uint64_t address, std::uint64_t bytes);

// Physical memory. It lives until it is released as often as it was created, retained and mapped.
inline constexpr int no_device = -1;  // memory of the host, or accounted to another process
MAYA_EXPORT int physical_create(std::uint64_t bytes, int device, void*& physical);
// Of another process, or of several devices at once (multicast): not accounted here.
MAYA_EXPORT int physical_import(std::uint64_t bytes, int device, void*& physical);
MAYA_EXPORT int physical_release(void* physical);
MAYA_EXPORT bool valid_physical(void* physical);
MAYA_EXPORT int physical_properties(void* physical, std::uint64_t& bytes, int& device);
// What is mapped at an address, retained.
MAYA_EXPORT int physical_at(const void* address, void*& physical);

MAYA_EXPORT int map_memory(std::uint64_t address, std::uint64_t bytes, void* physical);
MAYA_EXPORT int unmap_memory(std::uint64_t address, std::uint64_t bytes);

// Interprocess handles: what travels is where the memory is, in the process that exports it.
struct SharedMemory {
  std::uint64_t address{}, bytes{};
  std::int64_t process{};
  std::int32_t device{};  // physical number
};
MAYA_EXPORT int export_memory(const void* address, SharedMemory& memory);
MAYA_EXPORT int import_memory(const SharedMemory& memory, void** address);
MAYA_EXPORT int close_imported(void* address);

}  // namespace maya::session
