// Virtual memory management of the driver, shareable handles and multicast.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "abi/cuda.h"
#include "session/session.h"
#include "session/virtual_memory.h"

using namespace maya;
using namespace maya::abi;

namespace {

void* physical(CUmemGenericAllocationHandle handle) { return reinterpret_cast<void*>(handle); }

int valid_physical(CUmemGenericAllocationHandle handle) {
  return session::valid_physical(physical(handle)) ? 0 : 1;
}

// Memory that is not accounted to a device of this process.
int import_physical(CUmemGenericAllocationHandle* handle, std::uint64_t bytes) {
  void* made = nullptr;
  int error = session::physical_import(bytes, session::no_device, made);
  if (error == 0) *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return error;
}

}  // namespace

extern "C" {

int cuMemGetAllocationGranularity(size_t* value, const CUmemAllocationProp*, int) {
  if (value == nullptr) return 1;
  *value = session::mapping_granularity;
  return session::ready();
}

int cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                        unsigned long long) {
  session::Call call;
  if (address == nullptr) return 1;
  std::uint64_t reserved = 0;
  int error = session::reserve_addresses(bytes, alignment, reserved);
  if (error == 0) *address = reserved;
  return error;
}
int cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  session::Call call;
  return session::free_addresses(address, bytes);
}

int cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                const CUmemAllocationProp* property, unsigned long long) {
  session::Call call;
  if (handle == nullptr || property == nullptr) return 1;
  const bool on_device = property->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (on_device && property->location.id < 0) return session::code::invalid_device;
  void* made = nullptr;
  int error =
      session::physical_create(bytes, on_device ? property->location.id : session::no_device, made);
  if (error == 0) *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return error;
}

int cuMemRelease(CUmemGenericAllocationHandle handle) {
  session::Call call;
  return session::physical_release(physical(handle));
}

int cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  session::Call call;
  return session::map_memory(address, bytes, physical(handle));
}

int cuMemUnmap(CUdeviceptr address, size_t bytes) {
  session::Call call;
  return session::unmap_memory(address, bytes);
}

int cuMemSetAccess(CUdeviceptr address, size_t, const CUmemAccessDesc* description, size_t) {
  const auto found = session::pointer(reinterpret_cast<void*>(address));
  return description != nullptr && session::is_device_pointer(reinterpret_cast<void*>(address)) &&
                 found.allocated
             ? 0
             : 1;
}
int cuMemGetAccess(unsigned long long* flags, const CUmemLocation*, CUdeviceptr) {
  if (flags == nullptr) return 1;
  *flags = 3;
  return 0;
}

int cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  if (handle == nullptr) return 1;
  void* found = nullptr;
  int error = session::physical_at(address, found);
  if (error == 0) *handle = reinterpret_cast<CUmemGenericAllocationHandle>(found);
  return error;
}
int cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* property,
                                           CUmemGenericAllocationHandle handle) {
  std::uint64_t bytes = 0;
  int device = 0;
  if (property == nullptr) return 1;
  if (int error = session::physical_properties(physical(handle), bytes, device)) return error;
  std::memset(static_cast<void*>(property), 0, sizeof *property);
  property->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property->location = {
      device != session::no_device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST,
      device};
  return 0;
}

// A shareable handle is a file descriptor that says how much memory it stands for, or 64 bytes that
// do.
int cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, int type,
                                 unsigned long long) {
  std::uint64_t bytes = 0;
  int device = 0;
  if (out == nullptr) return 1;
  if (int error = session::physical_properties(physical(handle), bytes, device)) return error;
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    std::memset(out, 0, 64);
    std::memcpy(out, &bytes, sizeof bytes);
    return 0;
  }
  int file = memfd_create("maya-memory", MFD_CLOEXEC);
  if (file < 0 || write(file, &bytes, sizeof bytes) != sizeof bytes)
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
  return import_physical(handle, bytes);
}

int cuMulticastGetGranularity(size_t* value, const void*, int) {
  if (value == nullptr) return 1;
  *value = session::mapping_granularity;
  return 0;
}
int cuMulticastCreate(CUmemGenericAllocationHandle* handle, const void* property) {
  if (handle == nullptr || property == nullptr) return 1;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, static_cast<const char*>(property) + 8, sizeof bytes);
  return import_physical(handle, bytes);
}
int cuMulticastAddDevice(CUmemGenericAllocationHandle handle, int) {
  return valid_physical(handle);
}
int cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t, CUmemGenericAllocationHandle,
                       size_t, size_t, unsigned long long) {
  return valid_physical(handle);
}
int cuMulticastBindMem_v2(CUmemGenericAllocationHandle handle, int, size_t,
                          CUmemGenericAllocationHandle, size_t, size_t, unsigned long long) {
  return valid_physical(handle);
}
int cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t, CUdeviceptr, size_t,
                        unsigned long long) {
  return valid_physical(handle);
}
int cuMulticastUnbind(CUmemGenericAllocationHandle handle, int, size_t, size_t) {
  return valid_physical(handle);
}

}  // extern "C"
