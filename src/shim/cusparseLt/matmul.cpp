// cuSPARSELt: products with a 2:4 sparse operand.
//
// The sparse tensor cores skip half of the inner dimension, so the op is a dense product of half
// the depth: the work that is really done, and the bytes of the sparse operand without its
// metadata.
#include <cstring>
#include <new>

#include "abi/cusparselt.h"
#include "maya/op.h"
#include "session/host_memory.h"
#include "session/session.h"
#include "shim/common/element.h"

using namespace maya::abi;
using namespace maya;
using maya::shim::bytes_of;
using maya::shim::dtype_of;

namespace {

struct Matrix {
  std::int64_t rows{}, cols{}, ld{};
  int type{}, order{}, sparse{}, batch{1};
  std::int64_t stride{};
};
struct Product {
  int transpose_a{}, transpose_b{}, compute{};
  Matrix a, b, c, d;
  bool relu{}, gelu{};
  void* bias{};
};
struct Selection {
  int config{}, iterations{5}, split_k{1}, split_mode{}, split_buffers{};
};
struct Plan {
  Product product;
  Selection selection;
};

// The caller's opaque memory; our state is small and plain.
template <class Own, class T>
Own* as(T* opaque) {
  static_assert(sizeof(Own) <= sizeof(std::remove_const_t<T>));
  return session::mapped(opaque, sizeof(T))
             ? reinterpret_cast<Own*>(const_cast<std::remove_const_t<T>*>(opaque)->data)
             : nullptr;
}

constexpr auto kOk = CUSPARSE_STATUS_SUCCESS;
constexpr auto kBad = CUSPARSE_STATUS_INVALID_VALUE;

// Sparse tensor cores came with Ampere.
bool supported() { return maya::shim::capability() >= 80; }

cusparseStatus_t describe(cusparseLtMatDescriptor_t* matrix, std::int64_t rows, std::int64_t cols,
                          std::int64_t ld, int type, int order, int sparse) {
  if (!matrix || rows <= 0 || cols <= 0) return kBad;
  if (ld < (order == CUSPARSE_ORDER_ROW ? cols : rows)) return kBad;
  // Documented: both dimensions of a structured matrix are multiples of 16 (32 for 8-bit types).
  std::int64_t unit = maya::shim::bits_of(dtype_of(type)) <= 8 ? 32 : 16;
  if (sparse && (rows % unit || cols % unit)) return CUSPARSE_STATUS_NOT_SUPPORTED;
  new (matrix->data) Matrix{rows, cols, ld, type, order, sparse};
  return kOk;
}

Gemm gemm_of(const Product& product) {
  Gemm gemm;
  gemm.m = product.d.rows, gemm.n = product.d.cols;
  gemm.k = (product.transpose_a ? product.a.rows : product.a.cols) / 2;
  gemm.batch = product.d.batch;
  gemm.a = dtype_of(product.a.type), gemm.b = dtype_of(product.b.type),
  gemm.d = dtype_of(product.d.type);
  gemm.compute = maya::shim::rate_class(gemm.a, true);
  auto flipped = [](int operation, const Matrix& matrix) {
    return (operation != 0) != (matrix.order == CUSPARSE_ORDER_ROW);
  };
  gemm.transpose_a = flipped(product.transpose_a, product.a),
  gemm.transpose_b = flipped(product.transpose_b, product.b);
  gemm.lda = product.a.ld, gemm.ldb = product.b.ld, gemm.ldd = product.d.ld;
  bool bias = product.bias;
  gemm.epilogue = product.relu   ? (bias ? Epilogue::bias_relu : Epilogue::relu)
                  : product.gelu ? (bias ? Epilogue::bias_gelu : Epilogue::gelu)
                                 : (bias ? Epilogue::bias : Epilogue::none);
  return gemm;
}

std::size_t compressed_bytes(const Matrix& matrix) {
  // Half of the values and two bits of position for each.
  std::int64_t kept = matrix.rows * matrix.cols / 2;
  return static_cast<std::size_t>(bytes_of(dtype_of(matrix.type), kept) + (kept + 3) / 4 + 255) /
         256 * 256;
}

cusparseStatus_t convert(const char* name, const Matrix& matrix, void* to, std::uint64_t bytes,
                         void* stream) {
  session::Call call;
  Pointwise work;
  work.elements = matrix.rows * matrix.cols, work.dtype = dtype_of(matrix.type);
  work.bytes_read = bytes_of(work.dtype, work.elements),
  work.bytes_written = static_cast<std::int64_t>(bytes);
  return session::submit(stream, work, name, {session::writes(to, bytes)})
             ? CUSPARSE_STATUS_EXECUTION_FAILED
             : kOk;
}

}  // namespace

extern "C" {

cusparseStatus_t cusparseLtInit(cusparseLtHandle_t* handle) {
  session::Call call;
  if (!session::mapped(handle, sizeof *handle)) return kBad;
  if (!supported()) return CUSPARSE_STATUS_ARCH_MISMATCH;
  std::memset(handle->data, 0, sizeof handle->data);
  session::note_version("cusparseLt", "0.8.1");
  return kOk;
}
cusparseStatus_t cusparseLtDestroy(const cusparseLtHandle_t* handle) { return handle ? kOk : kBad; }
cusparseStatus_t cusparseLtGetVersion(const cusparseLtHandle_t* handle, int* version) {
  if (!handle || !version) return kBad;
  *version = 801;
  return kOk;
}
cusparseStatus_t cusparseLtGetProperty(libraryPropertyType type, int* value) {
  const int version[] = {0, 8, 1};
  if (!value) return kBad;
  *value = version[static_cast<int>(type) % 3];
  return kOk;
}

cusparseStatus_t cusparseLtDenseDescriptorInit(const cusparseLtHandle_t* handle,
                                               cusparseLtMatDescriptor_t* matrix, std::int64_t rows,
                                               std::int64_t cols, std::int64_t ld, std::uint32_t,
                                               cudaDataType type, cusparseOrder_t order) {
  return handle ? describe(matrix, rows, cols, ld, type, order, 0) : kBad;
}
cusparseStatus_t cusparseLtStructuredDescriptorInit(const cusparseLtHandle_t* handle,
                                                    cusparseLtMatDescriptor_t* matrix,
                                                    std::int64_t rows, std::int64_t cols,
                                                    std::int64_t ld, std::uint32_t,
                                                    cudaDataType type, cusparseOrder_t order,
                                                    cusparseLtSparsity_t) {
  return handle ? describe(matrix, rows, cols, ld, type, order, 1) : kBad;
}
cusparseStatus_t cusparseLtMatDescriptorDestroy(const cusparseLtMatDescriptor_t* matrix) {
  return matrix ? kOk : kBad;
}
// 0: batches, 1: stride between them.
cusparseStatus_t cusparseLtMatDescSetAttribute(const cusparseLtHandle_t* handle,
                                               cusparseLtMatDescriptor_t* matrix, int attribute,
                                               const void* data, std::size_t size) {
  auto* own = as<Matrix>(matrix);
  if (!handle || !own || !data) return kBad;
  if (attribute == 0 && size == sizeof own->batch)
    std::memcpy(&own->batch, data, size);
  else if (attribute == 1 && size == sizeof own->stride)
    std::memcpy(&own->stride, data, size);
  else
    return kBad;
  return kOk;
}

cusparseStatus_t cusparseLtMatmulDescriptorInit(
    const cusparseLtHandle_t* handle, cusparseLtMatmulDescriptor_t* matmul, cusparseOperation_t ta,
    cusparseOperation_t tb, const cusparseLtMatDescriptor_t* a, const cusparseLtMatDescriptor_t* b,
    const cusparseLtMatDescriptor_t* c, const cusparseLtMatDescriptor_t* d,
    cusparseComputeType compute) {
  if (!handle || !matmul || !a || !b || !c || !d) return kBad;
  Product product{ta, tb, compute, *as<Matrix>(a), *as<Matrix>(b), *as<Matrix>(c), *as<Matrix>(d)};
  if (product.a.sparse == product.b.sparse)
    return CUSPARSE_STATUS_NOT_SUPPORTED;  // exactly one is structured
  std::int64_t k = ta ? product.a.rows : product.a.cols;
  if ((tb ? product.b.cols : product.b.rows) != k ||
      (ta ? product.a.cols : product.a.rows) != product.d.rows ||
      (tb ? product.b.rows : product.b.cols) != product.d.cols)
    return kBad;
  new (matmul->data) Product(product);
  return kOk;
}
cusparseStatus_t cusparseLtMatmulDescSetAttribute(const cusparseLtHandle_t* handle,
                                                  cusparseLtMatmulDescriptor_t* matmul,
                                                  cusparseLtMatmulDescAttribute_t attribute,
                                                  const void* data, std::size_t size) {
  auto* own = as<Product>(matmul);
  if (!handle || !own || !data) return kBad;
  if (attribute == CUSPARSELT_MATMUL_ACTIVATION_RELU)
    own->relu = *static_cast<const int*>(data) != 0;
  if (attribute == CUSPARSELT_MATMUL_ACTIVATION_GELU)
    own->gelu = *static_cast<const int*>(data) != 0;
  if (attribute == CUSPARSELT_MATMUL_BIAS_POINTER) {
    if (size != sizeof own->bias) return kBad;
    std::memcpy(&own->bias, data, size);
  }
  return kOk;
}

cusparseStatus_t cusparseLtMatmulAlgSelectionInit(const cusparseLtHandle_t* handle,
                                                  cusparseLtMatmulAlgSelection_t* selection,
                                                  const cusparseLtMatmulDescriptor_t* matmul,
                                                  cusparseLtMatmulAlg_t) {
  if (!handle || !selection || !matmul) return kBad;
  new (selection->data) Selection;
  return kOk;
}
cusparseStatus_t cusparseLtMatmulAlgSelectionDestroy(
    const cusparseLtMatmulAlgSelection_t* selection) {
  return selection ? kOk : kBad;
}
cusparseStatus_t cusparseLtMatmulAlgSetAttribute(const cusparseLtHandle_t* handle,
                                                 cusparseLtMatmulAlgSelection_t* selection,
                                                 cusparseLtMatmulAlgAttribute_t attribute,
                                                 const void* data, std::size_t size) {
  auto* own = as<Selection>(selection);
  if (!handle || !own || !data || size != sizeof(int)) return kBad;
  int value = *static_cast<const int*>(data);
  switch (attribute) {
    case CUSPARSELT_MATMUL_ALG_CONFIG_ID:
      own->config = value;
      return kOk;
    case CUSPARSELT_MATMUL_SEARCH_ITERATIONS:
      own->iterations = value;
      return kOk;
    case CUSPARSELT_MATMUL_SPLIT_K:
      own->split_k = value;
      return kOk;
    case CUSPARSELT_MATMUL_SPLIT_K_MODE:
      own->split_mode = value;
      return kOk;
    case CUSPARSELT_MATMUL_SPLIT_K_BUFFERS:
      own->split_buffers = value;
      return kOk;
    default:
      return kBad;
  }
}
cusparseStatus_t cusparseLtMatmulAlgGetAttribute(const cusparseLtHandle_t* handle,
                                                 const cusparseLtMatmulAlgSelection_t* selection,
                                                 cusparseLtMatmulAlgAttribute_t attribute,
                                                 void* data, std::size_t size) {
  auto* own = as<Selection>(selection);
  if (!handle || !own || !data || size != sizeof(int)) return kBad;
  int value = 0;
  switch (attribute) {
    case CUSPARSELT_MATMUL_ALG_CONFIG_ID:
      value = own->config;
      break;
    case CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID:
      value = 1;
      break;
    case CUSPARSELT_MATMUL_SEARCH_ITERATIONS:
      value = own->iterations;
      break;
    case CUSPARSELT_MATMUL_SPLIT_K:
      value = own->split_k;
      break;
    case CUSPARSELT_MATMUL_SPLIT_K_MODE:
      value = own->split_mode;
      break;
    case CUSPARSELT_MATMUL_SPLIT_K_BUFFERS:
      value = own->split_buffers;
      break;
  }
  std::memcpy(data, &value, sizeof value);
  return kOk;
}

cusparseStatus_t cusparseLtMatmulPlanInit(const cusparseLtHandle_t* handle,
                                          cusparseLtMatmulPlan_t* plan,
                                          const cusparseLtMatmulDescriptor_t* matmul,
                                          const cusparseLtMatmulAlgSelection_t* selection) {
  if (!handle || !plan || !matmul || !selection) return kBad;
  static_assert(sizeof(Plan) <= kLtObjectBytes);
  new (plan->data) Plan{*as<Product>(matmul), *as<Selection>(selection)};
  return kOk;
}
cusparseStatus_t cusparseLtMatmulPlanDestroy(const cusparseLtMatmulPlan_t* plan) {
  return plan ? kOk : kBad;
}
cusparseStatus_t cusparseLtMatmulGetWorkspace(const cusparseLtHandle_t* handle,
                                              const cusparseLtMatmulPlan_t* plan,
                                              std::size_t* size) {
  if (!handle || !plan || !size) return kBad;
  const Plan& own = *as<Plan>(plan);
  *size = own.selection.split_k > 1
              ? static_cast<std::size_t>(own.product.d.rows * own.product.d.cols) * 4 *
                    static_cast<std::size_t>(own.selection.split_k)
              : 0;
  return kOk;
}
cusparseStatus_t cusparseLtMatmul(const cusparseLtHandle_t* handle,
                                  const cusparseLtMatmulPlan_t* plan, const void*, const void*,
                                  const void*, const void* beta, const void*, void* d, void*,
                                  CUstream_st** streams, int count) {
  session::Call call;
  if (!handle || !plan || !d) return kBad;
  const Product& product = as<Plan>(plan)->product;
  Gemm gemm = gemm_of(product);
  float scale = 0;
  if (beta) std::memcpy(&scale, beta, sizeof scale);
  gemm.accumulate = scale != 0;
  auto bytes = static_cast<std::uint64_t>(
      bytes_of(gemm.d, product.d.rows * product.d.cols * product.d.batch));
  void* stream = streams && count > 0 ? streams[0] : nullptr;
  return session::submit(stream, gemm, "cusparseLtMatmul", {session::writes(d, bytes)})
             ? CUSPARSE_STATUS_EXECUTION_FAILED
             : kOk;
}
// All configurations take the same modelled time: the default is as good as any.
cusparseStatus_t cusparseLtMatmulSearch(const cusparseLtHandle_t* handle,
                                        cusparseLtMatmulPlan_t* plan, const void* alpha,
                                        const void* a, const void* b, const void* beta,
                                        const void* c, void* d, void* workspace,
                                        CUstream_st** streams, int count) {
  return cusparseLtMatmul(handle, plan, alpha, a, b, beta, c, d, workspace, streams, count);
}

cusparseStatus_t cusparseLtSpMMACompressedSize2(const cusparseLtHandle_t* handle,
                                                const cusparseLtMatDescriptor_t* matrix,
                                                std::size_t* size, std::size_t* buffer) {
  if (!handle || !matrix || !size) return kBad;
  *size = compressed_bytes(*as<Matrix>(matrix));
  if (buffer) *buffer = 0;
  return kOk;
}
cusparseStatus_t cusparseLtSpMMACompressedSize(const cusparseLtHandle_t* handle,
                                               const cusparseLtMatmulPlan_t* plan,
                                               std::size_t* size, std::size_t* buffer) {
  if (!handle || !plan || !size) return kBad;
  const Product& product = as<Plan>(plan)->product;
  *size = compressed_bytes(product.a.sparse ? product.a : product.b);
  if (buffer) *buffer = 0;
  return kOk;
}
cusparseStatus_t cusparseLtSpMMACompress2(const cusparseLtHandle_t* handle,
                                          const cusparseLtMatDescriptor_t* matrix, int,
                                          cusparseOperation_t, const void*, void* to, void*,
                                          CUstream_st* stream) {
  if (!handle || !matrix || !to) return kBad;
  return convert("cusparseLtSpMMACompress2", *as<Matrix>(matrix), to,
                 compressed_bytes(*as<Matrix>(matrix)), stream);
}
cusparseStatus_t cusparseLtSpMMACompress(const cusparseLtHandle_t* handle,
                                         const cusparseLtMatmulPlan_t* plan, const void*, void* to,
                                         void*, CUstream_st* stream) {
  if (!handle || !plan || !to) return kBad;
  const Product& product = as<Plan>(plan)->product;
  const Matrix& matrix = product.a.sparse ? product.a : product.b;
  return convert("cusparseLtSpMMACompress", matrix, to, compressed_bytes(matrix), stream);
}
cusparseStatus_t cusparseLtSpMMAPrune2(const cusparseLtHandle_t* handle,
                                       const cusparseLtMatDescriptor_t* matrix, int,
                                       cusparseOperation_t, const void*, void* to,
                                       cusparseLtPruneAlg_t, CUstream_st* stream) {
  if (!handle || !matrix || !to) return kBad;
  const Matrix& own = *as<Matrix>(matrix);
  return convert("cusparseLtSpMMAPrune2", own, to,
                 static_cast<std::uint64_t>(bytes_of(dtype_of(own.type), own.rows * own.cols)),
                 stream);
}

}  // extern "C"
