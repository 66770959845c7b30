// Products and solves of the generic interface: SpMV, SpMM, SDDMM, SpGEMM, SpSV, SpSM.
#include <cmath>

#include "shim/cusparse/matrix.h"

using namespace maya::abi;
using namespace maya::shim::cusparse;
using namespace maya;
using maya::shim::bytes_of;
using maya::shim::dtype_of;

namespace {

cusparseStatus_t no_buffer(const void* handle, std::size_t* size) {
  if (!as<Handle>(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (!size) return CUSPARSE_STATUS_INVALID_VALUE;
  *size = 0;
  return CUSPARSE_STATUS_SUCCESS;
}

Sparse product(const SparseMatrix& a, std::int64_t columns, int operation) {
  Sparse work;
  bool flipped = operation != CUSPARSE_OPERATION_NON_TRANSPOSE;
  work.rows = (flipped ? a.cols : a.rows) * a.batch, work.cols = flipped ? a.rows : a.cols;
  work.nonzeros = a.nonzeros * a.batch, work.n = columns;
  work.dtype = dtype_of(a.type);
  return work;
}

cusparseStatus_t run(Handle& own, const char* name, const Sparse& work, const DenseMatrix& out) {
  if (work.rows == 0 || work.n == 0) return CUSPARSE_STATUS_SUCCESS;
  std::int64_t lines = out.order == CUSPARSE_ORDER_ROW ? out.rows : out.cols;
  std::int64_t elements =
      std::max<std::int64_t>(lines * out.ld, (out.batch - 1) * out.stride + lines * out.ld);
  return status_of(session::submit(
      own.stream, work, name,
      {session::writes(out.values,
                       static_cast<std::uint64_t>(bytes_of(dtype_of(out.type), elements)))}));
}

// What a sparse product's result holds is data nobody knows: as many as random patterns of the
// inputs' density would give.
struct Expected {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("cusparse work");
  std::int64_t rows{}, cols{}, nonzeros{};
};
Expected expected(const SparseMatrix& a, const SparseMatrix& b) {
  Expected c{a.rows, b.cols, 0};
  double cells = 1.0 * c.rows * c.cols, inner = std::max<std::int64_t>(1, a.cols);
  if (cells <= 0) return c;
  double products = 1.0 * a.nonzeros * b.nonzeros / inner;
  c.nonzeros = static_cast<std::int64_t>(std::llround(cells * -std::expm1(-products / cells)));
  return c;
}

}  // namespace

extern "C" {

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t, cusparseConstDnVecDescr_t,
                                         const void*, cusparseDnVecDescr_t, cudaDataType,
                                         cusparseSpMVAlg_t, std::size_t* size) {
  return no_buffer(handle, size);
}
cusparseStatus_t cusparseSpMV_preprocess(cusparseHandle_t handle, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t, cusparseConstDnVecDescr_t,
                                         const void*, cusparseDnVecDescr_t, cudaDataType,
                                         cusparseSpMVAlg_t, void*) {
  return handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
}
cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t operation, const void*,
                              cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void*,
                              cusparseDnVecDescr_t y, cudaDataType, cusparseSpMVAlg_t, void*) {
  MAYA_CUSPARSE_ENTER(handle);
  if (!as<SparseMatrix>(a) || !as<DenseMatrix>(x) || !as<DenseMatrix>(y))
    return CUSPARSE_STATUS_INVALID_VALUE;
  return run(*own, "cusparseSpMV", product(*as<SparseMatrix>(a), 1, operation),
             *as<DenseMatrix>(y));
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t,
                                         cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t, cusparseConstDnMatDescr_t,
                                         const void*, cusparseDnMatDescr_t, cudaDataType,
                                         cusparseSpMMAlg_t, std::size_t* size) {
  return no_buffer(handle, size);
}
cusparseStatus_t cusparseSpMM_preprocess(cusparseHandle_t handle, cusparseOperation_t,
                                         cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t, cusparseConstDnMatDescr_t,
                                         const void*, cusparseDnMatDescr_t, cudaDataType,
                                         cusparseSpMMAlg_t, void*) {
  return handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
}
cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t operation,
                              cusparseOperation_t, const void*, cusparseConstSpMatDescr_t a,
                              cusparseConstDnMatDescr_t b, const void*, cusparseDnMatDescr_t c,
                              cudaDataType, cusparseSpMMAlg_t, void*) {
  MAYA_CUSPARSE_ENTER(handle);
  if (!as<SparseMatrix>(a) || !as<DenseMatrix>(b) || !as<DenseMatrix>(c))
    return CUSPARSE_STATUS_INVALID_VALUE;
  return run(*own, "cusparseSpMM",
             product(*as<SparseMatrix>(a), as<DenseMatrix>(c)->cols, operation),
             *as<DenseMatrix>(c));
}

cusparseStatus_t cusparseSDDMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t,
                                          cusparseOperation_t, const void*,
                                          cusparseConstDnMatDescr_t, cusparseConstDnMatDescr_t,
                                          const void*, cusparseSpMatDescr_t, cudaDataType,
                                          cusparseSDDMMAlg_t, std::size_t* size) {
  return no_buffer(handle, size);
}
cusparseStatus_t cusparseSDDMM_preprocess(cusparseHandle_t handle, cusparseOperation_t,
                                          cusparseOperation_t, const void*,
                                          cusparseConstDnMatDescr_t, cusparseConstDnMatDescr_t,
                                          const void*, cusparseSpMatDescr_t, cudaDataType,
                                          cusparseSDDMMAlg_t, void*) {
  return handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
}
cusparseStatus_t cusparseSDDMM(cusparseHandle_t handle, cusparseOperation_t operation,
                               cusparseOperation_t, const void*, cusparseConstDnMatDescr_t a,
                               cusparseConstDnMatDescr_t b, const void*, cusparseSpMatDescr_t c,
                               cudaDataType, cusparseSDDMMAlg_t, void*) {
  MAYA_CUSPARSE_ENTER(handle);
  if (!as<DenseMatrix>(a) || !as<DenseMatrix>(b) || !as<SparseMatrix>(c))
    return CUSPARSE_STATUS_INVALID_VALUE;
  auto* dense = as<DenseMatrix>(a);
  auto* sparse = as<SparseMatrix>(c);
  // Each of C's entries is a dot product over the inner dimension.
  Sparse work = product(
      *sparse, operation == CUSPARSE_OPERATION_NON_TRANSPOSE ? dense->cols : dense->rows, 0);
  if (work.nonzeros == 0) return CUSPARSE_STATUS_SUCCESS;
  auto bytes = static_cast<std::uint64_t>(
      bytes_of(dtype_of(sparse->type), sparse->nonzeros * sparse->batch));
  return status_of(session::submit(own->stream, work, "cusparseSDDMM",
                                   {session::writes(sparse->values, bytes)}));
}

cusparseStatus_t cusparseSpGEMM_createDescr(cusparseSpGEMMDescr_t* descriptor) {
  return make(descriptor, Expected{});
}
cusparseStatus_t cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t descriptor) {
  return drop<Expected>(descriptor);
}
cusparseStatus_t cusparseSpGEMM_workEstimation(
    cusparseHandle_t handle, cusparseOperation_t, cusparseOperation_t, const void*,
    cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b, const void*, cusparseSpMatDescr_t,
    cudaDataType, cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t, std::size_t* size, void*) {
  MAYA_CUSPARSE_ENTER(handle);
  if (!as<SparseMatrix>(a) || !as<SparseMatrix>(b) || !size) return CUSPARSE_STATUS_INVALID_VALUE;
  *size = static_cast<std::size_t>(as<SparseMatrix>(a)->rows + 1) * 8;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpGEMM_compute(cusparseHandle_t handle, cusparseOperation_t,
                                        cusparseOperation_t, const void*,
                                        cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b,
                                        const void*, cusparseSpMatDescr_t c, cudaDataType,
                                        cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t descriptor,
                                        std::size_t* size, void* buffer) {
  MAYA_CUSPARSE_ENTER(handle);
  if (!as<SparseMatrix>(a) || !as<SparseMatrix>(b) || !as<SparseMatrix>(c) ||
      !as<Expected>(descriptor) || !size)
    return CUSPARSE_STATUS_INVALID_VALUE;
  Expected result = expected(*as<SparseMatrix>(a), *as<SparseMatrix>(b));
  *size = static_cast<std::size_t>(result.nonzeros) * 16;
  if (!buffer) return CUSPARSE_STATUS_SUCCESS;
  *as<Expected>(descriptor) = result;
  as<SparseMatrix>(c)->nonzeros = result.nonzeros;
  auto* left = as<SparseMatrix>(a);
  auto* right = as<SparseMatrix>(b);
  // A row of B is read for each entry of A: its mean length is the n of the op.
  Sparse work = product(
      *left, std::max<std::int64_t>(1, right->nonzeros / std::max<std::int64_t>(1, right->rows)),
      0);
  return status_of(session::submit(own->stream, work, "cusparseSpGEMM_compute"));
}
cusparseStatus_t cusparseSpGEMM_copy(cusparseHandle_t handle, cusparseOperation_t,
                                     cusparseOperation_t, const void*, cusparseConstSpMatDescr_t,
                                     cusparseConstSpMatDescr_t, const void*, cusparseSpMatDescr_t c,
                                     cudaDataType, cusparseSpGEMMAlg_t, cusparseSpGEMMDescr_t) {
  MAYA_CUSPARSE_ENTER(handle);
  auto* out = as<SparseMatrix>(c);
  if (!out) return CUSPARSE_STATUS_INVALID_VALUE;
  Copy work;
  work.bytes = out->nonzeros * (bytes_of(dtype_of(out->type), 1) + 8);
  if (work.bytes == 0) return CUSPARSE_STATUS_SUCCESS;
  auto bytes = static_cast<std::uint64_t>(bytes_of(dtype_of(out->type), out->nonzeros));
  return status_of(session::submit(own->stream, work, "cusparseSpGEMM_copy",
                                   {session::writes(out->values, bytes)}));
}

// Triangular solves: analysis reads the pattern, the solve reads the matrix once.
#define MAYA_SOLVE(NAME, DENSE, EXTRA)                                                         \
  cusparseStatus_t cusparse##NAME##_createDescr(cusparse##NAME##Descr_t* descriptor) {         \
    return make(descriptor, Expected{});                                                       \
  }                                                                                            \
  cusparseStatus_t cusparse##NAME##_destroyDescr(cusparse##NAME##Descr_t descriptor) {         \
    return drop<Expected>(descriptor);                                                         \
  }                                                                                            \
  cusparseStatus_t cusparse##NAME##_bufferSize(                                                \
      cusparseHandle_t handle, cusparseOperation_t EXTRA, const void*,                         \
      cusparseConstSpMatDescr_t a, cusparseConst##DENSE##Descr_t, cusparse##DENSE##Descr_t,    \
      cudaDataType, int, cusparse##NAME##Descr_t, std::size_t* size) {                         \
    if (!as<Handle>(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;                           \
    if (!as<SparseMatrix>(a) || !size) return CUSPARSE_STATUS_INVALID_VALUE;                   \
    *size = static_cast<std::size_t>(as<SparseMatrix>(a)->rows + 1) * 16;                      \
    return CUSPARSE_STATUS_SUCCESS;                                                            \
  }                                                                                            \
  cusparseStatus_t cusparse##NAME##_analysis(                                                  \
      cusparseHandle_t handle, cusparseOperation_t operation EXTRA, const void*,               \
      cusparseConstSpMatDescr_t a, cusparseConst##DENSE##Descr_t, cusparse##DENSE##Descr_t,    \
      cudaDataType, int, cusparse##NAME##Descr_t, void*) {                                     \
    MAYA_CUSPARSE_ENTER(handle);                                                               \
    if (!as<SparseMatrix>(a)) return CUSPARSE_STATUS_INVALID_VALUE;                            \
    return status_of(session::submit(own->stream, product(*as<SparseMatrix>(a), 1, operation), \
                                     "cusparse" #NAME "_analysis"));                           \
  }                                                                                            \
  cusparseStatus_t cusparse##NAME##_solve(                                                     \
      cusparseHandle_t handle, cusparseOperation_t operation EXTRA, const void*,               \
      cusparseConstSpMatDescr_t a, cusparseConst##DENSE##Descr_t, cusparse##DENSE##Descr_t y,  \
      cudaDataType, int, cusparse##NAME##Descr_t) {                                            \
    MAYA_CUSPARSE_ENTER(handle);                                                               \
    if (!as<SparseMatrix>(a) || !as<DenseMatrix>(y)) return CUSPARSE_STATUS_INVALID_VALUE;     \
    return run(*own, "cusparse" #NAME "_solve",                                                \
               product(*as<SparseMatrix>(a), as<DenseMatrix>(y)->cols, operation),             \
               *as<DenseMatrix>(y));                                                           \
  }
#define MAYA_NONE
#define MAYA_ONE_MORE , cusparseOperation_t
MAYA_SOLVE(SpSV, DnVec, MAYA_NONE)
MAYA_SOLVE(SpSM, DnMat, MAYA_ONE_MORE)

}  // extern "C"
