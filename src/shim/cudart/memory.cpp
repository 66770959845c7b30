#include <cstring>

#include "session/host_memory.h"
#include "session/kernels.h"
#include "session/virtual_memory.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;
using session::MemoryKind;

namespace {

// The bytes of an interprocess handle.
struct IpcMemory {
  char magic[8];
  session::SharedMemory memory;
};
constexpr char ipc_magic[8] = "mayaipc";
static_assert(sizeof(IpcMemory) <= sizeof(cudaIpcMemHandle_t));

constexpr int invalid_device_id = -2;  // cudaInvalidDeviceId

cudaError give_pool(cudaMemPool_t* to, int device, bool is_default) {
  void* pool = nullptr;
  if (to == nullptr) return result(1);
  if (int error = session::pool_of_device(device, is_default, pool)) return result(error);
  cudart::hand_out(to, pool);
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
  return result(session::allocate_async(address, bytes, stream));
}
cudaError cudaMallocFromPoolAsync(void** address, size_t bytes, void* pool, cudaStream_t stream) {
  session::Call call;
  return result(session::allocate_from_pool(address, bytes, pool, stream));
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
  return result(session::memory_info(free, total));
}

cudaError cudaPointerGetAttributes(cudaPointerAttributes* a, const void* address) {
  if (int error = session::touch()) return result(error);
  if (a == nullptr) return result(1);
  std::memset(static_cast<void*>(a), 0, sizeof *a);
  const session::Pointer p = session::pointer(address);
  auto* same = const_cast<void*>(address);
  a->device = p.device;
  switch (p.where) {
    case session::Where::managed:
      a->type = cudaMemoryTypeManaged, a->devicePointer = a->hostPointer = same;
      break;
    case session::Where::device:
      if (!p.allocated) return result(1);
      a->type = cudaMemoryTypeDevice, a->devicePointer = same;
      break;
    case session::Where::pinned:
      a->type = cudaMemoryTypeHost, a->devicePointer = a->hostPointer = same;
      a->device = session::current_device();
      break;
    case session::Where::pageable:
      a->type = cudaMemoryTypeUnregistered, a->device = invalid_device_id, a->hostPointer = same;
      break;
  }
  return cudaSuccess;
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
  return give_pool(pool, device, true);
}
cudaError cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return give_pool(pool, device, false);
}
cudaError cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return result(session::use_pool(device, pool));
}
cudaError cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (pool == nullptr || properties == nullptr) return result(1);
  void* made = nullptr;
  int error = session::pool_create(made, properties->location.id);
  if (error == 0) cudart::hand_out(pool, made);
  return result(error);
}
cudaError cudaMemPoolDestroy(cudaMemPool_t pool) { return result(session::pool_destroy(pool)); }
cudaError cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void* value) {
  return result(session::set_pool_attribute(pool, attribute, value));
}
cudaError cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void* value) {
  return result(session::pool_attribute(pool, attribute, value));
}
cudaError cudaMemPoolSetAccess(cudaMemPool_t pool, const void*, size_t) {
  return result(session::valid_pool(pool) ? 0 : 1);
}
cudaError cudaMemPoolGetAccess(int* flags, cudaMemPool_t pool, cudaMemLocation*) {
  if (flags == nullptr || !session::valid_pool(pool)) return result(1);
  *flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}
cudaError cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return result(session::pool_trim(pool, keep));
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
  IpcMemory ipc{};
  if (handle == nullptr) return result(1);
  if (int error = session::export_memory(address, ipc.memory)) return result(error);
  std::memcpy(ipc.magic, ipc_magic, sizeof ipc.magic);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &ipc, sizeof ipc);
  return cudaSuccess;
}
cudaError cudaIpcOpenMemHandle(void** address, cudaIpcMemHandle_t handle, unsigned) {
  session::Call call;
  IpcMemory ipc;
  std::memcpy(static_cast<void*>(&ipc), &handle, sizeof ipc);
  if (std::memcmp(ipc.magic, ipc_magic, sizeof ipc.magic) != 0) return result(1);
  return result(session::import_memory(ipc.memory, address));
}
cudaError cudaIpcCloseMemHandle(void* address) {
  session::Call call;
  return result(session::close_imported(address));
}
cudaError cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  std::uint32_t number = 0;
  if (handle == nullptr) return result(1);
  if (int error = session::event_export(event, number)) return result(error);
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &number, sizeof number);
  return cudaSuccess;
}
cudaError cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t) {
  if (event == nullptr) return result(1);
  void* made = nullptr;
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
