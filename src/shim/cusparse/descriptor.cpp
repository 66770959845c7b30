// Library context and descriptors.
#include "shim/cusparse/matrix.h"

using namespace maya::abi;
using namespace maya::shim::cusparse;

namespace {
constexpr auto kOk = CUSPARSE_STATUS_SUCCESS;
constexpr auto kBad = CUSPARSE_STATUS_INVALID_VALUE;
template <class T, class V>
void give(T* to, V value) {
  if (to) *to = static_cast<T>(value);
}
}  // namespace

extern "C" {

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) { return make(handle, Handle{}); }
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) { return drop<Handle>(handle); }
cusparseStatus_t cusparseGetVersion(cusparseHandle_t, int* version) {
  if (!version) return kBad;
  *version = 12700;
  return kOk;
}
cusparseStatus_t cusparseGetProperty(libraryPropertyType type, int* value) {
  const int version[] = {12, 7, 0};
  if (!value) return kBad;
  *value = version[static_cast<unsigned>(type) % 3];
  return kOk;
}
const char* cusparseGetErrorName(cusparseStatus_t status) {
  switch (status) {
    case CUSPARSE_STATUS_SUCCESS:
      return "CUSPARSE_STATUS_SUCCESS";
    case CUSPARSE_STATUS_NOT_INITIALIZED:
      return "CUSPARSE_STATUS_NOT_INITIALIZED";
    case CUSPARSE_STATUS_INVALID_VALUE:
      return "CUSPARSE_STATUS_INVALID_VALUE";
    case CUSPARSE_STATUS_EXECUTION_FAILED:
      return "CUSPARSE_STATUS_EXECUTION_FAILED";
    case CUSPARSE_STATUS_ZERO_PIVOT:
      return "CUSPARSE_STATUS_ZERO_PIVOT";
    case CUSPARSE_STATUS_NOT_SUPPORTED:
      return "CUSPARSE_STATUS_NOT_SUPPORTED";
    case CUSPARSE_STATUS_INSUFFICIENT_RESOURCES:
      return "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES";
    default:
      return "CUSPARSE_STATUS_INTERNAL_ERROR";
  }
}
const char* cusparseGetErrorString(cusparseStatus_t status) { return cusparseGetErrorName(status); }
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, CUstream_st* stream) {
  if (!as<Handle>(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  as<Handle>(handle)->stream = stream;
  return kOk;
}
cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, CUstream_st** stream) {
  if (!as<Handle>(handle) || !stream) return kBad;
  *stream = static_cast<CUstream_st*>(as<Handle>(handle)->stream);
  return kOk;
}
cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode) {
  if (!as<Handle>(handle)) return CUSPARSE_STATUS_NOT_INITIALIZED;
  as<Handle>(handle)->pointer_mode = mode;
  return kOk;
}
cusparseStatus_t cusparseGetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t* mode) {
  if (!as<Handle>(handle) || !mode) return kBad;
  *mode = static_cast<cusparsePointerMode_t>(as<Handle>(handle)->pointer_mode);
  return kOk;
}

cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t* descriptor) {
  return make(descriptor, MatrixTraits{});
}
cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t descriptor) {
  return drop<MatrixTraits>(descriptor);
}
#define MAYA_TRAIT(NAME, FIELD, TYPE)                                                           \
  cusparseStatus_t cusparseSetMat##NAME(cusparseMatDescr_t descriptor, TYPE value) {            \
    if (!as<MatrixTraits>(descriptor)) return kBad;                                             \
    as<MatrixTraits>(descriptor)->FIELD = value;                                                \
    return kOk;                                                                                 \
  }                                                                                             \
  TYPE cusparseGetMat##NAME(const cusparseMatDescr_t descriptor) {                              \
    return static_cast<TYPE>(as<MatrixTraits>(descriptor) ? as<MatrixTraits>(descriptor)->FIELD \
                                                          : 0);                                 \
  }
MAYA_TRAIT(Type, type, cusparseMatrixType_t)
MAYA_TRAIT(FillMode, fill, cusparseFillMode_t)
MAYA_TRAIT(DiagType, diagonal, cusparseDiagType_t)
MAYA_TRAIT(IndexBase, base, cusparseIndexBase_t)

#define MAYA_CREATE_COMPRESSED(NAME, FORMAT, DESCRIPTOR, VOID)                                     \
  cusparseStatus_t NAME(DESCRIPTOR* descriptor, std::int64_t rows, std::int64_t cols,              \
                        std::int64_t nonzeros, VOID* offsets, VOID* indices, VOID* values,         \
                        cusparseIndexType_t offset_type, cusparseIndexType_t index_type,           \
                        cusparseIndexBase_t base, cudaDataType type) {                             \
    if (rows < 0 || cols < 0 || nonzeros < 0) return kBad;                                         \
    return make(descriptor, SparseMatrix{FORMAT, rows, cols, nonzeros, const_cast<void*>(offsets), \
                                         const_cast<void*>(indices), const_cast<void*>(values),    \
                                         offset_type, index_type, base, type});                    \
  }
MAYA_CREATE_COMPRESSED(cusparseCreateCsr, CUSPARSE_FORMAT_CSR, cusparseSpMatDescr_t, void)
MAYA_CREATE_COMPRESSED(cusparseCreateConstCsr, CUSPARSE_FORMAT_CSR, cusparseConstSpMatDescr_t,
                       const void)
MAYA_CREATE_COMPRESSED(cusparseCreateCsc, CUSPARSE_FORMAT_CSC, cusparseSpMatDescr_t, void)
MAYA_CREATE_COMPRESSED(cusparseCreateConstCsc, CUSPARSE_FORMAT_CSC, cusparseConstSpMatDescr_t,
                       const void)
cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* descriptor, std::int64_t rows,
                                   std::int64_t cols, std::int64_t nonzeros, void* row,
                                   void* column, void* values, cusparseIndexType_t index_type,
                                   cusparseIndexBase_t base, cudaDataType type) {
  if (rows < 0 || cols < 0 || nonzeros < 0) return kBad;
  return make(descriptor, SparseMatrix{CUSPARSE_FORMAT_COO, rows, cols, nonzeros, row, column,
                                       values, index_type, index_type, base, type});
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t descriptor) {
  return drop<SparseMatrix>(descriptor);
}
cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t descriptor, void* offsets,
                                        void* indices, void* values) {
  auto* own = as<SparseMatrix>(descriptor);
  if (!own) return kBad;
  own->offsets = offsets, own->indices = indices, own->values = values;
  return kOk;
}
cusparseStatus_t cusparseCsrSetStridedBatch(cusparseSpMatDescr_t descriptor, int batch,
                                            std::int64_t offset_stride, std::int64_t value_stride) {
  auto* own = as<SparseMatrix>(descriptor);
  if (!own || batch < 1) return kBad;
  own->batch = batch, own->offset_stride = offset_stride, own->value_stride = value_stride;
  return kOk;
}
cusparseStatus_t cusparseCsrGet(cusparseSpMatDescr_t descriptor, std::int64_t* rows,
                                std::int64_t* cols, std::int64_t* nonzeros, void** offsets,
                                void** indices, void** values, cusparseIndexType_t* offset_type,
                                cusparseIndexType_t* index_type, cusparseIndexBase_t* base,
                                cudaDataType* type) {
  auto* own = as<SparseMatrix>(descriptor);
  if (!own) return kBad;
  give(rows, own->rows), give(cols, own->cols), give(nonzeros, own->nonzeros);
  if (offsets) *offsets = own->offsets;
  if (indices) *indices = own->indices;
  if (values) *values = own->values;
  give(offset_type, own->offset_type), give(index_type, own->index_type), give(base, own->base),
      give(type, own->type);
  return kOk;
}
cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t descriptor, std::int64_t* rows,
                                      std::int64_t* cols, std::int64_t* nonzeros) {
  auto* own = as<SparseMatrix>(descriptor);
  if (!own) return kBad;
  give(rows, own->rows), give(cols, own->cols), give(nonzeros, own->nonzeros);
  return kOk;
}
cusparseStatus_t cusparseSpMatGetFormat(cusparseConstSpMatDescr_t descriptor,
                                        cusparseFormat_t* format) {
  if (!as<SparseMatrix>(descriptor) || !format) return kBad;
  give(format, as<SparseMatrix>(descriptor)->format);
  return kOk;
}
cusparseStatus_t cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t descriptor,
                                           cusparseIndexBase_t* base) {
  if (!as<SparseMatrix>(descriptor) || !base) return kBad;
  give(base, as<SparseMatrix>(descriptor)->base);
  return kOk;
}
cusparseStatus_t cusparseSpMatGetValues(cusparseSpMatDescr_t descriptor, void** values) {
  if (!as<SparseMatrix>(descriptor) || !values) return kBad;
  *values = as<SparseMatrix>(descriptor)->values;
  return kOk;
}
cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t descriptor, void* values) {
  if (!as<SparseMatrix>(descriptor)) return kBad;
  as<SparseMatrix>(descriptor)->values = values;
  return kOk;
}
cusparseStatus_t cusparseSpMatGetStridedBatch(cusparseConstSpMatDescr_t descriptor, int* batch) {
  if (!as<SparseMatrix>(descriptor) || !batch) return kBad;
  *batch = as<SparseMatrix>(descriptor)->batch;
  return kOk;
}
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t descriptor,
                                           cusparseSpMatAttribute_t attribute, void* data,
                                           std::size_t size) {
  auto* own = as<SparseMatrix>(descriptor);
  if (!own || !data || size != sizeof(int)) return kBad;
  (attribute == CUSPARSE_SPMAT_FILL_MODE ? own->fill : own->diagonal) = *static_cast<int*>(data);
  return kOk;
}

cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* descriptor, std::int64_t rows,
                                     std::int64_t cols, std::int64_t ld, void* values,
                                     cudaDataType type, cusparseOrder_t order) {
  if (rows < 0 || cols < 0 || ld < (order == CUSPARSE_ORDER_ROW ? cols : rows)) return kBad;
  return make(descriptor, DenseMatrix{rows, cols, ld, values, type, order});
}
cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* descriptor, std::int64_t rows,
                                          std::int64_t cols, std::int64_t ld, const void* values,
                                          cudaDataType type, cusparseOrder_t order) {
  return make(descriptor, DenseMatrix{rows, cols, ld, const_cast<void*>(values), type, order});
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t descriptor) {
  return drop<DenseMatrix>(descriptor);
}
cusparseStatus_t cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t descriptor, int batch,
                                              std::int64_t stride) {
  auto* own = as<DenseMatrix>(descriptor);
  if (!own || batch < 1) return kBad;
  own->batch = batch, own->stride = stride;
  return kOk;
}
cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* descriptor, std::int64_t size,
                                     void* values, cudaDataType type) {
  if (size < 0) return kBad;
  return make(descriptor, DenseMatrix{size, 1, size, values, type});
}
cusparseStatus_t cusparseCreateConstDnVec(cusparseConstDnVecDescr_t* descriptor, std::int64_t size,
                                          const void* values, cudaDataType type) {
  return make(descriptor, DenseMatrix{size, 1, size, const_cast<void*>(values), type});
}
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t descriptor) {
  return drop<DenseMatrix>(descriptor);
}
cusparseStatus_t cusparseDnVecGetValues(cusparseDnVecDescr_t descriptor, void** values) {
  if (!as<DenseMatrix>(descriptor) || !values) return kBad;
  *values = as<DenseMatrix>(descriptor)->values;
  return kOk;
}
cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t descriptor, void* values) {
  if (!as<DenseMatrix>(descriptor)) return kBad;
  as<DenseMatrix>(descriptor)->values = values;
  return kOk;
}
cusparseStatus_t cusparseDnMatGetValues(cusparseDnMatDescr_t descriptor, void** values) {
  if (!as<DenseMatrix>(descriptor) || !values) return kBad;
  *values = as<DenseMatrix>(descriptor)->values;
  return kOk;
}
cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t descriptor, void* values) {
  if (!as<DenseMatrix>(descriptor)) return kBad;
  as<DenseMatrix>(descriptor)->values = values;
  return kOk;
}

}  // extern "C"
