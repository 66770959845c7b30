#include "session/host_memory.h"
#include "session/kernels.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;
using session::Area;

namespace {

// cudaMemcpyKind: host to host, … , default. Addresses decide, as with unified addressing; what is
// no kind is refused.
bool is_kind(int kind) { return kind >= 0 && kind <= 4; }
using session::code::invalid_direction;

cudaError copy(void* to, const void* from, size_t bytes, void* stream, bool async) {
  session::Call call;
  return result(session::copy(Area{.to = to, .from = from, .width = bytes}, stream, async));
}

cudaError copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                  size_t height, void* stream, bool async) {
  session::Call call;
  if (width > to_pitch || width > from_pitch) return result(session::code::invalid_pitch);
  Area area{.to = to,
            .from = from,
            .width = width,
            .height = height,
            .to_pitch = to_pitch,
            .from_pitch = from_pitch};
  return result(session::copy(area, stream, async));
}

cudaError copy_3d(const cudaMemcpy3DParms* p, void* stream, bool async) {
  session::Call call;
  if (p != nullptr && !is_kind(p->kind)) return result(invalid_direction);
  if (p == nullptr || p->srcArray != nullptr || p->dstArray != nullptr)
    return result(p == nullptr ? 1 : session::code::not_supported);
  auto start = [](const cudaPitchedPtr& ptr, const cudaPos& pos) {
    return static_cast<char*>(ptr.ptr) + pos.z * ptr.pitch * ptr.ysize + pos.y * ptr.pitch + pos.x;
  };
  Area area{.to = start(p->dstPtr, p->dstPos),
            .from = start(p->srcPtr, p->srcPos),
            .width = p->extent.width,
            .height = p->extent.height,
            .depth = p->extent.depth,
            .to_pitch = p->dstPtr.pitch,
            .from_pitch = p->srcPtr.pitch,
            .to_slice = p->dstPtr.pitch * p->dstPtr.ysize,
            .from_slice = p->srcPtr.pitch * p->srcPtr.ysize};
  return result(session::copy(area, stream, async));
}

cudaError fill(void* to, size_t pitch, int value, size_t width, size_t height, void* stream,
               bool async) {
  session::Call call;
  return result(
      session::fill(to, pitch, static_cast<unsigned char>(value), 1, width, height, stream, async));
}

int symbol(const void* symbol, size_t offset, size_t count, char*& address) {
  std::uint64_t found = 0, bytes = 0;
  if (int error = session::registered_variable(symbol, found, bytes)) return error;
  if (count > bytes || offset > bytes - count) return 1;
  address = reinterpret_cast<char*>(found) + offset;
  return 0;
}

}  // namespace

extern "C" {

cudaError cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  if (!is_kind(kind)) return result(invalid_direction);
  return copy(to, from, bytes, nullptr, false);
}
cudaError cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, cudaStream_t stream) {
  if (!is_kind(kind)) return result(invalid_direction);
  return copy(to, from, bytes, stream, true);
}
cudaError cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return copy(to, from, bytes, nullptr, false);
}
cudaError cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                              cudaStream_t stream) {
  return copy(to, from, bytes, stream, true);
}
cudaError cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                       size_t height, int kind) {
  if (!is_kind(kind)) return result(invalid_direction);
  return copy_2d(to, to_pitch, from, from_pitch, width, height, nullptr, false);
}
cudaError cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                            size_t width, size_t height, int kind, cudaStream_t stream) {
  if (!is_kind(kind)) return result(invalid_direction);
  return copy_2d(to, to_pitch, from, from_pitch, width, height, stream, true);
}
cudaError cudaMemcpy3D(const cudaMemcpy3DParms* p) { return copy_3d(p, nullptr, false); }
cudaError cudaMemcpy3DAsync(const cudaMemcpy3DParms* p, cudaStream_t stream) {
  return copy_3d(p, stream, true);
}

cudaError cudaMemcpyToSymbol(const void* name, const void* from, size_t bytes, size_t offset,
                             int kind) {
  if (!is_kind(kind)) return result(invalid_direction);
  char* to = nullptr;
  if (int error = symbol(name, offset, bytes, to)) return result(error);
  return copy(to, from, bytes, nullptr, false);
}
cudaError cudaMemcpyToSymbolAsync(const void* name, const void* from, size_t bytes, size_t offset,
                                  int kind, cudaStream_t stream) {
  if (!is_kind(kind)) return result(invalid_direction);
  char* to = nullptr;
  if (int error = symbol(name, offset, bytes, to)) return result(error);
  return copy(to, from, bytes, stream, true);
}
cudaError cudaMemcpyFromSymbol(void* to, const void* name, size_t bytes, size_t offset, int kind) {
  if (!is_kind(kind)) return result(invalid_direction);
  char* from = nullptr;
  if (int error = symbol(name, offset, bytes, from)) return result(error);
  return copy(to, from, bytes, nullptr, false);
}
cudaError cudaMemcpyFromSymbolAsync(void* to, const void* name, size_t bytes, size_t offset,
                                    int kind, cudaStream_t stream) {
  if (!is_kind(kind)) return result(invalid_direction);
  char* from = nullptr;
  if (int error = symbol(name, offset, bytes, from)) return result(error);
  return copy(to, from, bytes, stream, true);
}

cudaError cudaMemset(void* to, int value, size_t bytes) {
  return fill(to, bytes, value, bytes, 1, nullptr, false);
}
cudaError cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return fill(to, bytes, value, bytes, 1, stream, true);
}
cudaError cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return fill(to, pitch, value, width, height, nullptr, false);
}
cudaError cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                            cudaStream_t stream) {
  return fill(to, pitch, value, width, height, stream, true);
}

// Batches: one copy after the other on the stream.
#if MAYA_CUDA_MAJOR >= 13
cudaError cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                               size_t count, const void*, const size_t*, size_t,
                               cudaStream_t stream) {
#else
cudaError cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes,
                               size_t count, const void*, const size_t*, size_t, size_t*,
                               cudaStream_t stream) {
#endif
  if (count > 0 && (to == nullptr || from == nullptr || sizes == nullptr)) return result(1);
  if (!session::mapped(to, count * sizeof *to) || !session::mapped(from, count * sizeof *from) ||
      !session::mapped(sizes, count * sizeof *sizes) || count > 1 << 24)
    return result(count == 0 ? 0 : 1);
  for (size_t i = 0; i < count; ++i)
    if (cudaError error = copy(to[i], from[i], sizes[i], stream, true)) return error;
  return cudaSuccess;
}

}  // extern "C"
