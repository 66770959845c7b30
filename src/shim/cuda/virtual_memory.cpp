// Virtual memory management: physical memory, addresses and the mapping between them; sharing and
// multicast.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "abi/cuda.h"
#include "session/calls.h"

using namespace maya;
using namespace maya::abi;

namespace {

constexpr std::uint64_t granularity = device::Memory::page;

session::Physical* physical(CUmemGenericAllocationHandle handle) {
  return session::state().physicals.find(reinterpret_cast<void*>(handle));
}

std::mutex mapping_mutex;
std::map<std::uint64_t, session::Physical*> mappings;  // address → what is mapped there

}  // namespace

extern "C" {

int cuMemGetAllocationGranularity(size_t* value, const CUmemAllocationProp*, int) {
  if (value == nullptr) return 1;
  *value = granularity;
  return session::ready();
}

int cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                        unsigned long long) {
  session::Call call;
  if (int error = session::touch()) return error;
  if (address == nullptr || bytes == 0 || bytes % granularity != 0) return 1;
  *address = session::state().memory.reserve(session::thread().device, bytes, alignment);
  return *address != 0 ? 0 : 2;
}
int cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  session::Call call;
  return session::state().memory.unreserve(address, bytes) ? 0 : 1;
}

int cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                const CUmemAllocationProp* property, unsigned long long) {
  session::Call call;
  if (int error = session::touch()) return error;
  if (handle == nullptr || property == nullptr || bytes == 0 || bytes % granularity != 0) return 1;
  auto& s = session::state();
  bool on_device = property->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  int device = on_device ? property->location.id : -1;
  if (on_device && (device < 0 || device >= s.device_count())) return session::code::invalid_device;
  if (on_device && !s.memory.take_physical(device, bytes)) {
    s.recorder.record_wide(trace::Kind::out_of_memory,
                           static_cast<std::uint32_t>(trace::MemoryKind::mapped), bytes,
                           static_cast<std::uint32_t>(device));
    return 2;
  }
  auto* made = s.physicals.create();
  if (made == nullptr) return 2;
  made->device = device, made->bytes = bytes;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return 0;
}

int cuMemRelease(CUmemGenericAllocationHandle handle) {
  session::Call call;
  session::Physical* p = physical(handle);
  if (p == nullptr) return 1;
  if (--p->references > 0) return 0;
  auto& s = session::state();
  if (p->device >= 0) s.memory.give_physical(p->device, p->bytes);
  s.physicals.destroy(p);
  return 0;
}

int cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  session::Call call;
  session::Physical* p = physical(handle);
  if (p == nullptr || bytes == 0) return 1;
  auto& s = session::state();
  auto allocation = s.memory.map(address, bytes);
  if (!allocation) return 1;
  ++p->references;  // a mapping keeps the memory alive after cuMemRelease
  {
    std::lock_guard guard(mapping_mutex);
    mappings[address] = p;
  }
  s.recorder.record_wide(trace::Kind::allocate,
                         static_cast<std::uint32_t>(trace::MemoryKind::mapped), bytes,
                         allocation->id, static_cast<std::uint16_t>(std::max(0, p->device)));
  return 0;
}

int cuMemUnmap(CUdeviceptr address, size_t bytes) {
  session::Call call;
  auto& s = session::state();
  std::uint64_t end = address + bytes;
  while (address < end) {
    auto allocation = s.memory.unmap(address);
    if (!allocation) return 1;
    s.values.forget(address, allocation->bytes);
    madvise(reinterpret_cast<void*>(address), allocation->bytes, MADV_DONTNEED);
    s.recorder.record_wide(trace::Kind::release,
                           static_cast<std::uint32_t>(trace::MemoryKind::mapped), allocation->bytes,
                           allocation->id);
    session::Physical* p = nullptr;
    {
      std::lock_guard guard(mapping_mutex);
      if (auto it = mappings.find(address); it != mappings.end())
        p = it->second, mappings.erase(it);
    }
    if (p != nullptr) cuMemRelease(reinterpret_cast<CUmemGenericAllocationHandle>(p));
    address += allocation->bytes;
  }
  return 0;
}

int cuMemSetAccess(CUdeviceptr address, size_t, const CUmemAccessDesc* description, size_t) {
  return description != nullptr && session::state().memory.extent(address) > 0 ? 0 : 1;
}
int cuMemGetAccess(unsigned long long* flags, const CUmemLocation*, CUdeviceptr) {
  if (flags == nullptr) return 1;
  *flags = 3;
  return 0;
}

int cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  auto allocation = session::state().memory.find(reinterpret_cast<std::uint64_t>(address));
  std::lock_guard guard(mapping_mutex);
  auto it = allocation ? mappings.find(allocation->address) : mappings.end();
  if (it == mappings.end() || handle == nullptr) return 1;
  ++it->second->references;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(it->second);
  return 0;
}
int cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* property,
                                           CUmemGenericAllocationHandle handle) {
  session::Physical* p = physical(handle);
  if (p == nullptr || property == nullptr) return 1;
  std::memset(static_cast<void*>(property), 0, sizeof *property);
  property->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property->location = {p->device >= 0 ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST,
                        p->device};
  return 0;
}

// A shareable handle is a file descriptor that says how much memory it stands for, or 64 bytes that
// do.
int cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, int type,
                                 unsigned long long) {
  session::Physical* p = physical(handle);
  if (p == nullptr || out == nullptr) return 1;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    std::memset(out, 0, 64);
    std::memcpy(out, &p->bytes, sizeof p->bytes);
    return 0;
  }
  int file = memfd_create("maya-memory", MFD_CLOEXEC);
  if (file < 0 || write(file, &p->bytes, sizeof p->bytes) != sizeof p->bytes)
    return session::code::not_supported;
  *static_cast<int*>(out) = file;
  return 0;
}
int cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* in, int type) {
  if (handle == nullptr || in == nullptr) return 1;
  std::uint64_t bytes = 0;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC)
    std::memcpy(&bytes, in, sizeof bytes);
  else if (pread(static_cast<int>(reinterpret_cast<std::intptr_t>(in)), &bytes, sizeof bytes, 0) !=
           sizeof bytes)
    return 1;
  auto* made = session::state().physicals.create();
  if (made == nullptr) return 2;
  made->device = -1, made->bytes = bytes;  // the exporter's memory: not accounted here
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return 0;
}

int cuMulticastGetGranularity(size_t* value, const void*, int) {
  if (value == nullptr) return 1;
  *value = granularity;
  return 0;
}
int cuMulticastCreate(CUmemGenericAllocationHandle* handle, const void* property) {
  if (handle == nullptr || property == nullptr) return 1;
  auto* made = session::state().physicals.create();
  if (made == nullptr) return 2;
  std::memcpy(&made->bytes, static_cast<const char*>(property) + 8, 8);
  made->device = -1;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return 0;
}
int cuMulticastAddDevice(CUmemGenericAllocationHandle handle, int) {
  return physical(handle) ? 0 : 1;
}
int cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t, CUmemGenericAllocationHandle,
                       size_t, size_t, unsigned long long) {
  return physical(handle) ? 0 : 1;
}
int cuMulticastBindMem_v2(CUmemGenericAllocationHandle handle, int, size_t,
                          CUmemGenericAllocationHandle, size_t, size_t, unsigned long long) {
  return physical(handle) ? 0 : 1;
}
int cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t, CUdeviceptr, size_t,
                        unsigned long long) {
  return physical(handle) ? 0 : 1;
}
int cuMulticastUnbind(CUmemGenericAllocationHandle handle, int, size_t, size_t) {
  return physical(handle) ? 0 : 1;
}

}  // extern "C"
