// cublasSetVector, GetVector, SetMatrix, GetMatrix and their asynchronous forms: strided copies
// over PCIe.
#include "session/host_memory.h"
#include "shim/cublas/handle.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
using namespace maya;

namespace {

// `columns` pieces of `bytes` each, `from_step` and `to_step` bytes apart.
cublasStatus_t move(const char* name, std::int64_t columns, std::int64_t bytes, const void* from,
                    std::int64_t from_step, void* to, std::int64_t to_step, bool to_device,
                    void* stream) {
  session::Call call;
  if (columns < 0 || bytes < 0 || from_step < bytes || to_step < bytes)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (columns == 0 || bytes == 0) return CUBLAS_STATUS_SUCCESS;
  // All of it must be memory of the host on one side and of the device on the other.
  std::int64_t from_span = 0, to_span = 0;
  if (__builtin_mul_overflow(columns, from_step, &from_span) ||
      __builtin_mul_overflow(columns, to_step, &to_span))
    return CUBLAS_STATUS_INVALID_VALUE;
  const std::int64_t host_span = (to_device ? from_span - from_step : to_span - to_step) + bytes;
  if (!session::mapped(to_device ? from : to, static_cast<std::size_t>(host_span)) ||
      session::is_device_pointer(to_device ? from : to) ||
      !session::is_device_pointer(to_device ? to : from))
    return CUBLAS_STATUS_MAPPING_ERROR;
  if (from_step == bytes && to_step == bytes) bytes *= columns, columns = 1;
  Copy copy;
  copy.bytes = columns * bytes;
  copy.direction = to_device ? CopyDirection::host_to_device : CopyDirection::device_to_host;
  int error = session::submit(stream, copy, name);
  auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  for (std::int64_t i = 0; i < columns; ++i) {
    if (to_device)
      session::write_device(target + i * to_step, source + i * from_step,
                            static_cast<std::size_t>(bytes));
    else
      session::read_device(target + i * to_step, source + i * from_step,
                           static_cast<std::size_t>(bytes));
  }
  return error ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

#define MAYA_TRANSFERS(SUFFIX, I)                                                                  \
  cublasStatus_t cublasSetVector##SUFFIX(I n, I size, const void* x, I incx, void* y, I incy) {    \
    return move("cublasSetVector" #SUFFIX, n, size, x, std::int64_t{size} * incx, y,               \
                std::int64_t{size} * incy, true, nullptr);                                         \
  }                                                                                                \
  cublasStatus_t cublasGetVector##SUFFIX(I n, I size, const void* x, I incx, void* y, I incy) {    \
    return move("cublasGetVector" #SUFFIX, n, size, x, std::int64_t{size} * incx, y,               \
                std::int64_t{size} * incy, false, nullptr);                                        \
  }                                                                                                \
  cublasStatus_t cublasSetMatrix##SUFFIX(I rows, I cols, I size, const void* a, I lda, void* b,    \
                                         I ldb) {                                                  \
    return move("cublasSetMatrix" #SUFFIX, cols, std::int64_t{rows} * size, a,                     \
                std::int64_t{lda} * size, b, std::int64_t{ldb} * size, true, nullptr);             \
  }                                                                                                \
  cublasStatus_t cublasGetMatrix##SUFFIX(I rows, I cols, I size, const void* a, I lda, void* b,    \
                                         I ldb) {                                                  \
    return move("cublasGetMatrix" #SUFFIX, cols, std::int64_t{rows} * size, a,                     \
                std::int64_t{lda} * size, b, std::int64_t{ldb} * size, false, nullptr);            \
  }                                                                                                \
  cublasStatus_t cublasSetVectorAsync##SUFFIX(I n, I size, const void* x, I incx, void* y, I incy, \
                                              CUstream_st* stream) {                               \
    return move("cublasSetVectorAsync" #SUFFIX, n, size, x, std::int64_t{size} * incx, y,          \
                std::int64_t{size} * incy, true, stream);                                          \
  }                                                                                                \
  cublasStatus_t cublasGetVectorAsync##SUFFIX(I n, I size, const void* x, I incx, void* y, I incy, \
                                              CUstream_st* stream) {                               \
    return move("cublasGetVectorAsync" #SUFFIX, n, size, x, std::int64_t{size} * incx, y,          \
                std::int64_t{size} * incy, false, stream);                                         \
  }                                                                                                \
  cublasStatus_t cublasSetMatrixAsync##SUFFIX(I rows, I cols, I size, const void* a, I lda,        \
                                              void* b, I ldb, CUstream_st* stream) {               \
    return move("cublasSetMatrixAsync" #SUFFIX, cols, std::int64_t{rows} * size, a,                \
                std::int64_t{lda} * size, b, std::int64_t{ldb} * size, true, stream);              \
  }                                                                                                \
  cublasStatus_t cublasGetMatrixAsync##SUFFIX(I rows, I cols, I size, const void* a, I lda,        \
                                              void* b, I ldb, CUstream_st* stream) {               \
    return move("cublasGetMatrixAsync" #SUFFIX, cols, std::int64_t{rows} * size, a,                \
                std::int64_t{lda} * size, b, std::int64_t{ldb} * size, false, stream);             \
  }
MAYA_TRANSFERS(, int)
MAYA_TRANSFERS(_64, std::int64_t)

}  // extern "C"
