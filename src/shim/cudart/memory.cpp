#include <unistd.h>
#include <cstring>

#include "session/host_memory.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;
using device::MemoryKind;

namespace {

// What travels between processes: where the memory is, in the exporting process and on which
// device.
struct IpcMemory {
  char magic[8];
  std::uint64_t address, bytes;
  std::int64_t process;
  std::int32_t device;
};
constexpr char ipc_magic[8] = "mayaipc";

session::Pool* pool_of(void* handle) { return session::state().pools.find(handle); }

template <class Attributes>
cudaError attributes(Attributes* a, const void* address) {
  if (int error = session::touch()) return result(error);
  if (a == nullptr) return result(1);
  std::memset(static_cast<void*>(a), 0, sizeof *a);
  auto* p = const_cast<void*>(address);
  switch (session::where(address)) {
    case session::Where::managed:
      a->type = cudaMemoryTypeManaged, a->devicePointer = a->hostPointer = p;
      break;
    case session::Where::device:
      if (session::state().memory.extent(reinterpret_cast<std::uint64_t>(address)) == 0)
        return result(1);
      a->type = cudaMemoryTypeDevice, a->devicePointer = p;
      break;
    case session::Where::pinned:
      a->type = cudaMemoryTypeHost, a->devicePointer = a->hostPointer = p;
      a->device = session::thread().device;
      return cudaSuccess;
    case session::Where::pageable:
      a->type = cudaMemoryTypeUnregistered, a->device = -2, a->hostPointer = p;
      return cudaSuccess;
  }
  a->device = session::state().memory.device_of(reinterpret_cast<std::uint64_t>(address));
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError cudaMalloc(void** address, size_t bytes) {
  session::Call call;
  return result(session::allocate(address, bytes, MemoryKind::device));
}
cudaError cudaFree(void* address) {
  session::Call call;
  return result(session::release(address));
}
cudaError cudaMallocManaged(void** address, size_t bytes, unsigned) {
  session::Call call;
  if (bytes == 0) return result(1);
  return result(session::allocate(address, bytes, MemoryKind::managed));
}
cudaError cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  session::Call call;
  if (pitch == nullptr) return result(1);
  *pitch = (width + 511) / 512 * 512;
  return result(session::allocate(address, *pitch * height, MemoryKind::device));
}
cudaError cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  session::Call call;
  if (pitched == nullptr) return result(1);
  pitched->pitch = (extent.width + 511) / 512 * 512, pitched->xsize = extent.width,
  pitched->ysize = extent.height;
  return result(session::allocate(&pitched->ptr, pitched->pitch * extent.height * extent.depth,
                                  MemoryKind::device));
}
cudaError cudaMallocAsync(void** address, size_t bytes, cudaStream_t stream) {
  session::Call call;
  return result(session::allocate_async(address, bytes, nullptr, stream));
}
cudaError cudaMallocFromPoolAsync(void** address, size_t bytes, void* pool, cudaStream_t stream) {
  session::Call call;
  session::Pool* from = pool_of(pool);
  return result(from == nullptr ? 1 : session::allocate_async(address, bytes, from, stream));
}
cudaError cudaFreeAsync(void* address, cudaStream_t stream) {
  session::Call call;
  return result(session::release_async(address, stream));
}
cudaError cudaHostAlloc(void** address, size_t bytes, unsigned) {
  session::Call call;
  return result(session::allocate_host(address, bytes));
}
cudaError cudaMallocHost(void** address, size_t bytes) { return cudaHostAlloc(address, bytes, 0); }
cudaError cudaFreeHost(void* address) {
  session::Call call;
  return result(session::release_host(address));
}
cudaError cudaHostRegister(void* address, size_t bytes, unsigned) {
  session::Call call;
  return result(session::register_host(address, bytes));
}
cudaError cudaHostUnregister(void* address) {
  session::Call call;
  return result(session::unregister_host(address));
}
cudaError cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  if (device == nullptr || !session::is_pinned(host)) return result(1);
  *device = host;
  return cudaSuccess;
}
cudaError cudaHostGetFlags(unsigned* flags, void* host) {
  if (flags == nullptr || !session::is_pinned(host)) return result(1);
  *flags = cudaHostAllocMapped;
  return cudaSuccess;
}

cudaError cudaMemGetInfo(size_t* free, size_t* total) {
  session::Call call;
  if (int error = session::touch()) return result(error);
  auto& memory = session::state().memory;
  int device = session::thread().device;
  if (free != nullptr) *free = memory.free_bytes(device);
  if (total != nullptr) *total = memory.total(device);
  return cudaSuccess;
}

cudaError cudaPointerGetAttributes(cudaPointerAttributes* a, const void* address) {
  return attributes(a, address);
}

cudaError cudaMemAdvise(const void*, size_t, int, cudaMemLocation) {
  return result(session::ready());
}
cudaError cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return result(session::ready());
}
cudaError cudaMemAdvise_v2(const void*, size_t, int, cudaMemLocation) {
  return result(session::ready());
}
cudaError cudaMemPrefetchAsync_v2(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return result(session::ready());
}

cudaError cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (int error = session::ready()) return result(error);
  if (pool == nullptr) return result(1);
  if (device < 0 || device >= session::state().device_count())
    return result(session::code::invalid_device);
  cudart::hand_out(pool, session::state().default_pools[static_cast<size_t>(device)]);
  return cudaSuccess;
}
cudaError cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  if (int error = session::ready()) return result(error);
  if (pool == nullptr) return result(1);
  if (device < 0 || device >= session::state().device_count())
    return result(session::code::invalid_device);
  cudart::hand_out(pool, session::state().current_pools[static_cast<size_t>(device)]);
  return cudaSuccess;
}
cudaError cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  if (int error = session::ready()) return result(error);
  if (pool_of(pool) == nullptr) return result(1);
  if (device < 0 || device >= session::state().device_count())
    return result(session::code::invalid_device);
  session::state().current_pools[static_cast<size_t>(device)] = pool_of(pool);
  return cudaSuccess;
}
cudaError cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (int error = session::touch()) return result(error);
  if (pool == nullptr || properties == nullptr) return result(1);
  session::Pool* made = session::state().pools.create();
  if (made == nullptr) return result(2);
  made->device = properties->location.id;
  cudart::hand_out(pool, made);
  return cudaSuccess;
}
cudaError cudaMemPoolDestroy(cudaMemPool_t pool) {
  session::Pool* found = pool_of(pool);
  if (found == nullptr || found->is_default) return result(1);
  session::state().pools.destroy(pool);
  return cudaSuccess;
}
cudaError cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void* value) {
  session::Pool* found = pool_of(pool);
  if (found == nullptr || value == nullptr) return result(1);
  auto number = *static_cast<std::uint64_t*>(value);
  if (attribute == cudaMemPoolAttrReleaseThreshold) found->release_threshold = number;
  if (attribute == cudaMemPoolAttrReservedMemHigh) found->reserved_high = found->reserved;
  if (attribute == cudaMemPoolAttrUsedMemHigh) found->used_high = found->used;
  return cudaSuccess;
}
cudaError cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void* value) {
  session::Pool* found = pool_of(pool);
  if (found == nullptr || value == nullptr) return result(1);
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      *static_cast<int*>(value) = 1;
      break;
    case cudaMemPoolAttrReleaseThreshold:
      *static_cast<std::uint64_t*>(value) = found->release_threshold;
      break;
    case cudaMemPoolAttrReservedMemCurrent:
      *static_cast<std::uint64_t*>(value) = found->reserved;
      break;
    case cudaMemPoolAttrReservedMemHigh:
      *static_cast<std::uint64_t*>(value) = found->reserved_high;
      break;
    case cudaMemPoolAttrUsedMemCurrent:
      *static_cast<std::uint64_t*>(value) = found->used;
      break;
    case cudaMemPoolAttrUsedMemHigh:
      *static_cast<std::uint64_t*>(value) = found->used_high;
      break;
    default:
      return result(1);
  }
  return cudaSuccess;
}
cudaError cudaMemPoolSetAccess(cudaMemPool_t pool, const void*, size_t) {
  return result(pool_of(pool) ? 0 : 1);
}
cudaError cudaMemPoolGetAccess(int* flags, cudaMemPool_t pool, cudaMemLocation*) {
  if (flags == nullptr || pool_of(pool) == nullptr) return result(1);
  *flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}
cudaError cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  session::Pool* found = pool_of(pool);
  if (found == nullptr) return result(1);
  found->reserved =
      std::max<std::uint64_t>(found->used, std::min<std::uint64_t>(found->reserved, keep));
  return cudaSuccess;
}
cudaError cudaDeviceGetGraphMemAttribute(int, int, void* value) {
  if (!session::mapped(value, 8)) return result(1);
  *static_cast<std::uint64_t*>(value) = 0;
  return result(session::ready());
}
cudaError cudaDeviceSetGraphMemAttribute(int, int, void*) { return result(session::ready()); }
cudaError cudaDeviceGraphMemTrim(int) { return result(session::ready()); }

cudaError cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  session::Call call;
  auto allocation = session::state().memory.find(reinterpret_cast<std::uint64_t>(address));
  if (handle == nullptr || !allocation) return result(1);
  IpcMemory memory{{},
                   allocation->address,
                   allocation->bytes,
                   getpid(),
                   session::physical_device(allocation->device)};
  std::memcpy(memory.magic, ipc_magic, 8);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &memory, sizeof memory);
  return cudaSuccess;
}
cudaError cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned) {
  session::Call call;
  if (int error = session::touch()) return result(error);
  IpcMemory memory;
  std::memcpy(&memory, &handle, sizeof memory);
  if (address == nullptr || std::memcmp(memory.magic, ipc_magic, 8) != 0) return result(1);
  std::uint64_t alias = session::state().memory.alias(session::thread().device, memory.bytes);
  if (alias == 0) return result(2);
  *address = reinterpret_cast<void*>(alias);
  return cudaSuccess;
}
cudaError cudaIpcCloseMemHandle(void* address) {
  session::Call call;
  return result(session::state().memory.release(reinterpret_cast<std::uint64_t>(address)) ? 0 : 1);
}
cudaError cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  auto* found = session::state().events.find(event);
  if (handle == nullptr || found == nullptr || !(found->flags & cudaEventInterprocess))
    return result(1);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &found->id, sizeof found->id);
  return cudaSuccess;
}
cudaError cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t) {
  if (event == nullptr) return result(1);
  session::Event* made = nullptr;
  int error = session::event_create(made, cudaEventDisableTiming | cudaEventInterprocess);
  if (error == 0) cudart::hand_out(event, made);
  return result(error);
}

cudaError cudaGetSymbolAddress(void** address, const void* symbol) {
  std::uint64_t found = 0, bytes = 0;
  int error = session::registered_variable(symbol, found, bytes);
  if (error == 0 && address != nullptr) *address = reinterpret_cast<void*>(found);
  return result(error);
}
cudaError cudaGetSymbolSize(size_t* size, const void* symbol) {
  std::uint64_t found = 0, bytes = 0;
  int error = session::registered_variable(symbol, found, bytes);
  if (error == 0 && size != nullptr) *size = bytes;
  return result(error);
}

}  // extern "C"
