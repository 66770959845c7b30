// Conversions and sorts, sparse addition, and the block-sparse routines torch uses.
#include <vector>

#include "shim/cusparse/matrix.h"

using namespace maya::abi;
using namespace maya::shim::cusparse;
using namespace maya;
using maya::shim::bytes_of;

namespace {

constexpr DType kLetterS = DType::f32, kLetterD = DType::f64, kLetterC = DType::c64,
                kLetterZ = DType::c128;

cusparseStatus_t sort(Handle& own, const char* name, std::int64_t elements, void* keys,
                      void* permutation) {
  if (elements < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  if (elements == 0) return CUSPARSE_STATUS_SUCCESS;
  Sort work;
  work.elements = elements, work.key_bytes = 8, work.value_bytes = permutation ? 4 : 0;
  auto bytes = static_cast<std::uint64_t>(elements) * 4;
  return status_of(session::submit(
      own.stream, work, name,
      {session::writes(keys, bytes), session::writes(permutation ? permutation : keys, bytes)}));
}

cusparseStatus_t sort_buffer(const void* handle, std::int64_t elements, std::size_t* size) {
  if (!as<Handle>(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (!size || elements < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  *size = static_cast<std::size_t>(elements) * 16;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t convert(Handle& own, const char* name, std::int64_t read, std::int64_t written,
                         void* to) {
  Pointwise work;
  work.elements = std::max(read, written), work.dtype = DType::i32;
  work.bytes_read = read * 4, work.bytes_written = written * 4;
  if (work.elements == 0) return CUSPARSE_STATUS_SUCCESS;
  return status_of(session::submit(own.stream, work, name,
                                   {session::writes(to, static_cast<std::uint64_t>(written) * 4)}));
}

// Blocks of `block` × `block`; `n` dense columns.
cusparseStatus_t blocks(Handle& own, const char* name, DType type, std::int64_t rows,
                        std::int64_t cols, std::int64_t count, std::int64_t block, std::int64_t n,
                        void* to, std::int64_t elements) {
  if (rows < 0 || cols < 0 || count < 0 || block < 1 || n < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  if (count == 0 || n == 0) return CUSPARSE_STATUS_SUCCESS;
  Sparse work;
  work.rows = rows * block, work.cols = cols * block, work.nonzeros = count * block * block,
  work.n = n;
  work.dtype = type;
  return status_of(
      session::submit(own.stream, work, name,
                      {session::writes(to, static_cast<std::uint64_t>(bytes_of(type, elements)))}));
}

struct Info {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("cusparse info");
};

}  // namespace

extern "C" {

cusparseStatus_t cusparseXcoosort_bufferSizeExt(cusparseHandle_t handle, int, int, int nonzeros,
                                                const int*, const int*, std::size_t* size) {
  return sort_buffer(handle, nonzeros, size);
}
cusparseStatus_t cusparseXcoosortByRow(cusparseHandle_t handle, int, int, int nonzeros, int* rows,
                                       int*, int* order, void*) {
  MAYA_CUSPARSE_ENTER(handle);
  return sort(*own, "cusparseXcoosortByRow", nonzeros, rows, order);
}
cusparseStatus_t cusparseXcoosortByColumn(cusparseHandle_t handle, int, int, int nonzeros, int*,
                                          int* columns, int* order, void*) {
  MAYA_CUSPARSE_ENTER(handle);
  return sort(*own, "cusparseXcoosortByColumn", nonzeros, columns, order);
}
cusparseStatus_t cusparseXcsrsort_bufferSizeExt(cusparseHandle_t handle, int, int, int nonzeros,
                                                const int*, const int*, std::size_t* size) {
  return sort_buffer(handle, nonzeros, size);
}
cusparseStatus_t cusparseXcsrsort(cusparseHandle_t handle, int, int, int nonzeros,
                                  const cusparseMatDescr_t, const int*, int* columns, int* order,
                                  void*) {
  MAYA_CUSPARSE_ENTER(handle);
  return sort(*own, "cusparseXcsrsort", nonzeros, columns, order);
}
cusparseStatus_t cusparseCreateIdentityPermutation(cusparseHandle_t handle, int n, int* order) {
  MAYA_CUSPARSE_ENTER(handle);
  if (n < 0) return CUSPARSE_STATUS_INVALID_VALUE;
  cusparseStatus_t status = convert(*own, "cusparseCreateIdentityPermutation", 0, n, order);
  if (n > 0 && n <= 4096) {  // small integers may steer the host: they are what they are
    std::vector<int> numbers(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i)] = i;
    session::write_device(order, numbers.data(), numbers.size() * sizeof(int));
  }
  return status;
}
cusparseStatus_t cusparseXcoo2csr(cusparseHandle_t handle, const int*, int nonzeros, int rows,
                                  int* offsets, cusparseIndexBase_t) {
  MAYA_CUSPARSE_ENTER(handle);
  return convert(*own, "cusparseXcoo2csr", nonzeros, std::int64_t{rows} + 1, offsets);
}
cusparseStatus_t cusparseXcsr2coo(cusparseHandle_t handle, const int*, int nonzeros, int rows,
                                  int* indices, cusparseIndexBase_t) {
  MAYA_CUSPARSE_ENTER(handle);
  return convert(*own, "cusparseXcsr2coo", std::int64_t{rows} + 1, nonzeros, indices);
}

// C = αA + βB: as if no two entries met, which is the most C can hold.
cusparseStatus_t cusparseXcsrgeam2Nnz(cusparseHandle_t handle, int rows, int,
                                      const cusparseMatDescr_t, int nnz_a, const int*, const int*,
                                      const cusparseMatDescr_t, int nnz_b, const int*, const int*,
                                      const cusparseMatDescr_t, int* offsets, int* total, void*) {
  MAYA_CUSPARSE_ENTER(handle);
  if (!total) return CUSPARSE_STATUS_INVALID_VALUE;
  int sum = nnz_a + nnz_b;
  if (own->pointer_mode == CUSPARSE_POINTER_MODE_HOST)
    *total = sum;
  else
    session::write_device(total, &sum, sizeof sum);
  return convert(*own, "cusparseXcsrgeam2Nnz", sum, std::int64_t{rows} + 1, offsets);
}
#define MAYA_GEAM(L)                                                                               \
  cusparseStatus_t cusparse##L##csrgeam2_bufferSizeExt(                                            \
      cusparseHandle_t handle, int rows, int, const void*, const cusparseMatDescr_t, int,          \
      const void*, const int*, const int*, const void*, const cusparseMatDescr_t, int,             \
      const void*, const int*, const int*, const cusparseMatDescr_t, const void*, const int*,      \
      const int*, std::size_t* size) {                                                             \
    return sort_buffer(handle, std::int64_t{rows} + 1, size);                                      \
  }                                                                                                \
  cusparseStatus_t cusparse##L##csrgeam2(                                                          \
      cusparseHandle_t handle, int, int, const void*, const cusparseMatDescr_t, int nnz_a,         \
      const void*, const int*, const int*, const void*, const cusparseMatDescr_t, int nnz_b,       \
      const void*, const int*, const int*, const cusparseMatDescr_t, void* values, int*, int*,     \
      void*) {                                                                                     \
    MAYA_CUSPARSE_ENTER(handle);                                                                   \
    Pointwise work;                                                                                \
    work.elements = std::int64_t{nnz_a} + nnz_b, work.dtype = kLetter##L, work.inputs = 2;         \
    work.bytes_read = work.bytes_written =                                                         \
        bytes_of(work.dtype, work.elements) + work.elements * 4;                                   \
    if (work.elements == 0) return CUSPARSE_STATUS_SUCCESS;                                        \
    return status_of(session::submit(own->stream, work, "cusparse" #L "csrgeam2",                  \
                                     {session::writes(values, static_cast<std::uint64_t>(bytes_of( \
                                                                  work.dtype, work.elements)))})); \
  }
MAYA_GEAM(S)
MAYA_GEAM(D)
MAYA_GEAM(C)
MAYA_GEAM(Z)

#define MAYA_INFO(NAME)                                                             \
  cusparseStatus_t cusparseCreate##NAME(void** info) { return make(info, Info{}); } \
  cusparseStatus_t cusparseDestroy##NAME(void* info) { return drop<Info>(info); }
MAYA_INFO(Bsrsv2Info)
MAYA_INFO(Bsrsm2Info)
// No block is singular, as far as anybody knows.
cusparseStatus_t cusparseXbsrsv2_zeroPivot(cusparseHandle_t handle, void*, int* position) {
  if (!as<Handle>(handle) || !position) return CUSPARSE_STATUS_INVALID_VALUE;
  *position = -1;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseXbsrsm2_zeroPivot(cusparseHandle_t handle, void*, int* position) {
  return cusparseXbsrsv2_zeroPivot(handle, nullptr, position);
}

#define MAYA_BLOCKS(L)                                                                            \
  cusparseStatus_t cusparse##L##bsrmv(                                                            \
      cusparseHandle_t handle, cusparseDirection_t, cusparseOperation_t, int rows, int cols,      \
      int count, const void*, const cusparseMatDescr_t, const void*, const int*, const int*,      \
      int block, const void*, const void*, void* y) {                                             \
    MAYA_CUSPARSE_ENTER(handle);                                                                  \
    return blocks(*own, "cusparse" #L "bsrmv", kLetter##L, rows, cols, count, block, 1, y,        \
                  std::int64_t{rows} * block);                                                    \
  }                                                                                               \
  cusparseStatus_t cusparse##L##bsrmm(cusparseHandle_t handle, cusparseDirection_t,               \
                                      cusparseOperation_t, cusparseOperation_t, int rows, int n,  \
                                      int cols, int count, const void*, const cusparseMatDescr_t, \
                                      const void*, const int*, const int*, const int block,       \
                                      const void*, const int, const void*, void* c, int ldc) {    \
    MAYA_CUSPARSE_ENTER(handle);                                                                  \
    return blocks(*own, "cusparse" #L "bsrmm", kLetter##L, rows, cols, count, block, n, c,        \
                  std::int64_t{ldc} * n);                                                         \
  }                                                                                               \
  cusparseStatus_t cusparse##L##bsrsv2_bufferSize(                                                \
      cusparseHandle_t handle, cusparseDirection_t, cusparseOperation_t, int rows, int,           \
      const cusparseMatDescr_t, void*, const int*, const int*, int block, void*, int* size) {     \
    if (!as<Handle>(handle) || !size) return CUSPARSE_STATUS_INVALID_VALUE;                       \
    *size = (rows + 1) * 16 * std::max(1, block);                                                 \
    return CUSPARSE_STATUS_SUCCESS;                                                               \
  }                                                                                               \
  cusparseStatus_t cusparse##L##bsrsv2_analysis(                                                  \
      cusparseHandle_t handle, cusparseDirection_t, cusparseOperation_t, int rows, int count,     \
      const cusparseMatDescr_t, const void*, const int*, const int*, int, void*,                  \
      cusparseSolvePolicy_t, void* b) {                                                           \
    MAYA_CUSPARSE_ENTER(handle);                                                                  \
    return blocks(*own, "cusparse" #L "bsrsv2_analysis", kLetter##L, rows, rows, count, 1, 1, b,  \
                  rows);                                                                          \
  }                                                                                               \
  cusparseStatus_t cusparse##L##bsrsv2_solve(                                                     \
      cusparseHandle_t handle, cusparseDirection_t, cusparseOperation_t, int rows, int count,     \
      const void*, const cusparseMatDescr_t, const void*, const int*, const int*, int block,      \
      void*, const void*, void* x, cusparseSolvePolicy_t, void*) {                                \
    MAYA_CUSPARSE_ENTER(handle);                                                                  \
    return blocks(*own, "cusparse" #L "bsrsv2_solve", kLetter##L, rows, rows, count, block, 1, x, \
                  std::int64_t{rows} * block);                                                    \
  }                                                                                               \
  cusparseStatus_t cusparse##L##bsrsm2_bufferSize(                                                \
      cusparseHandle_t handle, cusparseDirection_t, cusparseOperation_t, cusparseOperation_t,     \
      int rows, int, int, const cusparseMatDescr_t, void*, const int*, const int*, int block,     \
      void*, int* size) {                                                                         \
    if (!as<Handle>(handle) || !size) return CUSPARSE_STATUS_INVALID_VALUE;                       \
    *size = (rows + 1) * 16 * std::max(1, block);                                                 \
    return CUSPARSE_STATUS_SUCCESS;                                                               \
  }                                                                                               \
  cusparseStatus_t cusparse##L##bsrsm2_analysis(                                                  \
      cusparseHandle_t handle, cusparseDirection_t, cusparseOperation_t, cusparseOperation_t,     \
      int rows, int, int count, const cusparseMatDescr_t, const void*, const int*, const int*,    \
      int, void*, cusparseSolvePolicy_t, void* b) {                                               \
    MAYA_CUSPARSE_ENTER(handle);                                                                  \
    return blocks(*own, "cusparse" #L "bsrsm2_analysis", kLetter##L, rows, rows, count, 1, 1, b,  \
                  rows);                                                                          \
  }                                                                                               \
  cusparseStatus_t cusparse##L##bsrsm2_solve(                                                     \
      cusparseHandle_t handle, cusparseDirection_t, cusparseOperation_t, cusparseOperation_t,     \
      int rows, int n, int count, const void*, const cusparseMatDescr_t, const void*, const int*, \
      const int*, int block, void*, const void*, int, void* x, int ldx, cusparseSolvePolicy_t,    \
      void*) {                                                                                    \
    MAYA_CUSPARSE_ENTER(handle);                                                                  \
    return blocks(*own, "cusparse" #L "bsrsm2_solve", kLetter##L, rows, rows, count, block, n, x, \
                  std::int64_t{ldx} * n);                                                         \
  }
MAYA_BLOCKS(S)
MAYA_BLOCKS(D)
MAYA_BLOCKS(C)
MAYA_BLOCKS(Z)

}  // extern "C"
