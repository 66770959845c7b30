#include <cstring>

#include "abi/cuda.h"
#include "session/calls.h"
#include "session/host_memory.h"

using namespace maya;
using namespace maya::abi;
using device::MemoryKind;
using session::Area;

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
  constexpr int host = 1, array = 3;
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
  constexpr int host = 1, array = 3;
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
  auto& s = session::state();
  auto where = session::where(pointer(address));
  auto allocation = s.memory.find(address);
  std::uint64_t base = 0, bytes = 0;
  bool pinned = session::is_pinned(pointer(address), &base, &bytes);
  if (!allocation && !pinned) return 1;
  if (allocation) base = allocation->address, bytes = allocation->bytes;
  bool managed = where == session::Where::managed;
  auto put = [&](auto value) { return std::memcpy(data, &value, sizeof value), 0; };
  switch (which) {
    case 1:
      return put(static_cast<void*>(reinterpret_cast<void*>(
          static_cast<std::uintptr_t>(allocation ? allocation->device + 1 : 1))));
    case 2:
      return put(static_cast<unsigned>(pinned ? 1 : 2));  // memory type
    case 3:
      return put(address);  // device pointer
    case 4:
      return pinned || managed ? put(pointer(address)) : 1;  // host pointer
    case 6:
      return put(1u);  // sync memops
    case 7:
      return put(
          static_cast<unsigned long long>(allocation ? allocation->id : base >> 12));  // buffer id
    case 8:
      return put(static_cast<unsigned>(managed));
    case 9:
      return put(allocation ? allocation->device : 0);  // device ordinal
    case 10:
      return put(static_cast<unsigned>(0));  // legacy IPC capable
    case 11:
      return put(pointer(base));  // range start
    case 12:
      return put(static_cast<size_t>(bytes));
    case 13:
      return put(static_cast<unsigned>(1));  // mapped
    case 14:
      return put(static_cast<unsigned>(1 | 8));  // handle types
    case 16:
      return put(3u);  // access flags
    default:
      return 1;
  }
}

}  // namespace

extern "C" {

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (int error = session::touch()) return error;
  auto& memory = session::state().memory;
  int device = session::thread().device;
  if (free != nullptr) *free = memory.free_bytes(device);
  if (total != nullptr) *total = memory.total(device);
  return 0;
}
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
  session::Call call;
  void* p = nullptr;
  int error = address == nullptr ? 1 : session::allocate_async(&p, bytes, nullptr, stream);
  if (error == 0) *address = reinterpret_cast<CUdeviceptr>(p);
  return error;
}
int cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, void* pool, void* stream) {
  session::Call call;
  void* p = nullptr;
  session::Pool* from = session::state().pools.find(pool);
  int error =
      address == nullptr || from == nullptr ? 1 : session::allocate_async(&p, bytes, from, stream);
  if (error == 0) *address = reinterpret_cast<CUdeviceptr>(p);
  return error;
}
int cuMemFreeAsync(CUdeviceptr address, void* stream) {
  session::Call call;
  return session::release_async(pointer(address), stream);
}
int cuMemPoolSetAttribute(void* pool, int, void*) {
  return session::state().pools.find(pool) ? 0 : 1;
}
int cuMemPoolGetAttribute(void* pool, int which, void* value) {
  session::Pool* p = session::state().pools.find(pool);
  if (p == nullptr || value == nullptr) return 1;
  auto& out = *static_cast<std::uint64_t*>(value);
  switch (which) {
    case 1:
    case 2:
    case 3:
      *static_cast<int*>(value) = 1;
      return 0;
    case 4:
      out = p->release_threshold;
      return 0;
    case 5:
      out = p->reserved;
      return 0;
    case 6:
      out = p->reserved_high;
      return 0;
    case 7:
      out = p->used;
      return 0;
    case 8:
      out = p->used_high;
      return 0;
    default:
      return 1;
  }
}
int cuMemPoolTrimTo(void* pool, size_t) { return session::state().pools.find(pool) ? 0 : 1; }
int cuMemPoolSetAccess(void* pool, const void*, size_t) {
  return session::state().pools.find(pool) ? 0 : 1;
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
      std::memset(data[i], 0,
                  which[i] == 1 || which[i] == 3 || which[i] == 4 || which[i] == 11 || which[i] == 7
                      ? 8
                      : 4);
    }
  return 0;
}
int cuPointerSetAttribute(const void*, int, CUdeviceptr) { return session::ready(); }
int cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  auto allocation = session::state().memory.find(address);
  if (!allocation) return session::code::not_found;
  if (base != nullptr) *base = allocation->address;
  if (bytes != nullptr) *bytes = allocation->bytes;
  return 0;
}
int cuMemAdvise(CUdeviceptr, size_t, int, int) { return session::ready(); }
int cuMemPrefetchAsync(CUdeviceptr, size_t, int, void*) { return session::ready(); }

}  // extern "C"
