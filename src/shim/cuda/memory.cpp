#include <cstring>

#include "abi/cuda.h"
#include "session/host_memory.h"
#include "session/session.h"

using namespace maya;
using namespace maya::abi;
using session::Area;
using session::MemoryKind;

namespace {

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

int allocate(CUdeviceptr* address, size_t bytes, MemoryKind kind) {
  session::Call call;
  if (address == nullptr || bytes == 0) return 1;
  void* p = nullptr;
  int error = session::allocate(&p, bytes, kind);
  *address = reinterpret_cast<CUdeviceptr>(p);
  return error;
}

int copy(void* to, const void* from, size_t bytes, void* stream, bool async) {
  session::Call call;
  return session::copy(Area{.to = to, .from = from, .width = bytes}, stream, async);
}

int fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width,
         size_t height, void* stream, bool async) {
  session::Call call;
  return session::fill(pointer(to), pitch, value, element, width * element, height, stream, async);
}

int copy_2d(const CUDA_MEMCPY2D* c, void* stream, bool async) {
  session::Call call;
  if (c == nullptr) return 1;
  constexpr int host = CU_MEMORYTYPE_HOST, array = CU_MEMORYTYPE_ARRAY;
  if (c->srcMemoryType == array || c->dstMemoryType == array) return session::code::not_supported;
  auto* from = c->srcMemoryType == host ? static_cast<const char*>(c->srcHost)
                                        : reinterpret_cast<const char*>(c->srcDevice);
  auto* to = c->dstMemoryType == host ? static_cast<char*>(c->dstHost)
                                      : reinterpret_cast<char*>(c->dstDevice);
  Area area{.to = to + c->dstY * c->dstPitch + c->dstXInBytes,
            .from = from + c->srcY * c->srcPitch + c->srcXInBytes,
            .width = c->WidthInBytes,
            .height = c->Height,
            .to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes,
            .from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes};
  return session::copy(area, stream, async);
}

int copy_3d(const CUDA_MEMCPY3D* c, void* stream, bool async) {
  session::Call call;
  if (c == nullptr) return 1;
  constexpr int host = CU_MEMORYTYPE_HOST, array = CU_MEMORYTYPE_ARRAY;
  if (c->srcMemoryType == array || c->dstMemoryType == array) return session::code::not_supported;
  auto* from = c->srcMemoryType == host ? static_cast<const char*>(c->srcHost)
                                        : reinterpret_cast<const char*>(c->srcDevice);
  auto* to = c->dstMemoryType == host ? static_cast<char*>(c->dstHost)
                                      : reinterpret_cast<char*>(c->dstDevice);
  size_t from_slice = c->srcPitch * c->srcHeight, to_slice = c->dstPitch * c->dstHeight;
  Area area{.to = to + c->dstZ * to_slice + c->dstY * c->dstPitch + c->dstXInBytes,
            .from = from + c->srcZ * from_slice + c->srcY * c->srcPitch + c->srcXInBytes,
            .width = c->WidthInBytes,
            .height = c->Height,
            .depth = c->Depth,
            .to_pitch = c->dstPitch,
            .from_pitch = c->srcPitch,
            .to_slice = to_slice,
            .from_slice = from_slice};
  return session::copy(area, stream, async);
}

int attribute(void* data, int which, CUdeviceptr address) {
  const session::Pointer p = session::pointer(pointer(address));
  const bool pinned = p.where == session::Where::pinned,
             managed = p.where == session::Where::managed;
  if (!p.allocated) return 1;
  auto put = [&](auto value) { return std::memcpy(data, &value, sizeof value), 0; };
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(reinterpret_cast<void*>(static_cast<std::uintptr_t>(p.device + 1)));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(static_cast<unsigned>(pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return pinned || managed ? put(pointer(address)) : 1;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(1u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(static_cast<unsigned long long>(pinned ? p.base >> 12 : p.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(static_cast<unsigned>(managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(p.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(0u);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(pointer(p.base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(static_cast<size_t>(p.bytes));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |
                                       CU_MEM_HANDLE_TYPE_FABRIC));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(3u);  // read and write
    default:
      return 1;
  }
}

// Attributes that are addresses or numbers of 64 bits; the others have 32.
bool is_wide(int which) {
  return which == CU_POINTER_ATTRIBUTE_CONTEXT || which == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
         which == CU_POINTER_ATTRIBUTE_HOST_POINTER || which == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
         which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
}

int allocate_async(CUdeviceptr* address, size_t bytes, void* pool, bool from_pool, void* stream) {
  session::Call call;
  void* p = nullptr;
  if (address == nullptr) return 1;
  int error = from_pool ? session::allocate_from_pool(&p, bytes, pool, stream)
                        : session::allocate_async(&p, bytes, stream);
  if (error == 0) *address = reinterpret_cast<CUdeviceptr>(p);
  return error;
}

}  // namespace

extern "C" {

int cuMemGetInfo_v2(size_t* free, size_t* total) { return session::memory_info(free, total); }
int cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return allocate(address, bytes, MemoryKind::device);
}
int cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return allocate(address, bytes, MemoryKind::managed);
}
int cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned) {
  if (pitch == nullptr) return 1;
  *pitch = (width + 511) / 512 * 512;
  return allocate(address, *pitch * height, MemoryKind::device);
}
int cuMemFree_v2(CUdeviceptr address) {
  session::Call call;
  return session::release(pointer(address));
}
int cuMemAllocHost_v2(void** address, size_t bytes) {
  session::Call call;
  return session::allocate_host(address, bytes);
}
int cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  return cuMemAllocHost_v2(address, bytes);
}
int cuMemFreeHost(void* address) {
  session::Call call;
  return session::release_host(address);
}
int cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
  session::Call call;
  return session::register_host(address, bytes);
}
int cuMemHostUnregister(void* address) {
  session::Call call;
  return session::unregister_host(address);
}
int cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned) {
  if (device == nullptr || !session::is_pinned(host)) return 1;
  *device = reinterpret_cast<CUdeviceptr>(host);
  return 0;
}
int cuMemAllocAsync(CUdeviceptr* address, size_t bytes, void* stream) {
  return allocate_async(address, bytes, nullptr, false, stream);
}
int cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, void* pool, void* stream) {
  return allocate_async(address, bytes, pool, true, stream);
}
int cuMemFreeAsync(CUdeviceptr address, void* stream) {
  session::Call call;
  return session::release_async(pointer(address), stream);
}
int cuMemPoolSetAttribute(void* pool, int which, void* value) {
  return session::set_pool_attribute(pool, which, value);
}
int cuMemPoolGetAttribute(void* pool, int which, void* value) {
  return session::pool_attribute(pool, which, value);
}
int cuMemPoolTrimTo(void* pool, size_t keep) { return session::pool_trim(pool, keep); }
int cuMemPoolSetAccess(void* pool, const void*, size_t) {
  return session::valid_pool(pool) ? 0 : 1;
}

int cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, nullptr, false);
}
int cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, void* stream) {
  return copy(pointer(to), pointer(from), bytes, stream, true);
}
int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(pointer(to), from, bytes, nullptr, false);
}
int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy(to, pointer(from), bytes, nullptr, false);
}
int cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, nullptr, false);
}
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, void* stream) {
  return copy(pointer(to), from, bytes, stream, true);
}
int cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, void* stream) {
  return copy(to, pointer(from), bytes, stream, true);
}
int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, void* stream) {
  return copy(pointer(to), pointer(from), bytes, stream, true);
}
int cuMemcpyPeerAsync(CUdeviceptr to, void*, CUdeviceptr from, void*, size_t bytes, void* stream) {
  return copy(pointer(to), pointer(from), bytes, stream, true);
}
int cuMemcpyPeer(CUdeviceptr to, void*, CUdeviceptr from, void*, size_t bytes) {
  return copy(pointer(to), pointer(from), bytes, nullptr, false);
}
int cuMemcpy2D_v2(const CUDA_MEMCPY2D* c) { return copy_2d(c, nullptr, false); }
int cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* c) { return copy_2d(c, nullptr, false); }
int cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, void* stream) { return copy_2d(c, stream, true); }
int cuMemcpy3D_v2(const CUDA_MEMCPY3D* c) { return copy_3d(c, nullptr, false); }
int cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* c, void* stream) { return copy_3d(c, stream, true); }

int cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
  return fill(to, n, value, 1, n, 1, nullptr, false);
}
int cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n) {
  return fill(to, n * 2, value, 2, n, 1, nullptr, false);
}
int cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) {
  return fill(to, n * 4, value, 4, n, 1, nullptr, false);
}
int cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, void* s) {
  return fill(to, n, value, 1, n, 1, s, true);
}
int cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, void* s) {
  return fill(to, n * 2, value, 2, n, 1, s, true);
}
int cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, void* s) {
  return fill(to, n * 4, value, 4, n, 1, s, true);
}
int cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char v, size_t w, size_t h, void* s) {
  return fill(to, pitch, v, 1, w, h, s, true);
}
int cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned v, size_t w, size_t h, void* s) {
  return fill(to, pitch, v, 4, w, h, s, true);
}

int cuPointerGetAttribute(void* data, int which, CUdeviceptr address) {
  if (int error = session::touch()) return error;
  return data == nullptr ? 1 : attribute(data, which, address);
}
int cuPointerGetAttributes(unsigned count, const int* which, void** data, CUdeviceptr address) {
  if (int error = session::touch()) return error;
  if (!session::mapped(which, std::size_t{count} * sizeof *which) ||
      !session::mapped(data, std::size_t{count} * sizeof *data))
    return 1;
  for (unsigned i = 0; i < count; ++i)
    if (!session::mapped(data[i], 8)) return 1;
  for (unsigned i = 0; i < count; ++i)
    if (attribute(data[i], which[i], address) != 0) {
      // Unlike the single form, this one answers with zeros for what does not apply.
      std::memset(data[i], 0, is_wide(which[i]) ? 8 : 4);
    }
  return 0;
}
int cuPointerSetAttribute(const void*, int, CUdeviceptr) { return session::ready(); }
int cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const session::Pointer p = session::pointer(pointer(address));
  if (!p.allocated || p.where == session::Where::pinned) return session::code::not_found;
  if (base != nullptr) *base = p.base;
  if (bytes != nullptr) *bytes = p.bytes;
  return 0;
}
int cuMemAdvise(CUdeviceptr, size_t, int, int) { return session::ready(); }
int cuMemPrefetchAsync(CUdeviceptr, size_t, int, void*) { return session::ready(); }

}  // extern "C"
