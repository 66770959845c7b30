// Grouped batched gemm: groups of products of different sizes in one launch.
//
// The op has one m, n and k. The dimension that differs between the groups is summed (groups are
// then a partition of one large product, as a mixture of experts is); where more than one differs,
// k is the mean that keeps the FLOPs.
#include <algorithm>
#include <cmath>
#include <vector>

#include "shim/cublas/product.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
namespace session = maya::session;

namespace {

template <class I>
cublasStatus_t grouped(cublasHandle_t handle, const char* name, const cublasOperation_t* ta,
                       const cublasOperation_t* tb, const I* m, const I* n, const I* k, int type_a,
                       const I* lda, int type_b, const I* ldb, const void* beta, int type_c,
                       const I* ldc, I groups, const I* sizes, int compute) {
  MAYA_CUBLAS_ENTER(handle);
  if (groups < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (groups == 0) return CUBLAS_STATUS_SUCCESS;
  if (!ta || !tb || !m || !n || !k || !lda || !ldb || !ldc || !sizes || !beta)
    return CUBLAS_STATUS_INVALID_VALUE;
  double flops = 0;
  std::int64_t total_m = 0, total_n = 0, count = 0;
  bool same_m = true, same_n = true, same_k = true;
  for (I g = 0; g < groups; ++g) {
    if (m[g] < 0 || n[g] < 0 || k[g] < 0 || sizes[g] < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (lda[g] < std::max<I>(1, ta[g] ? k[g] : m[g]) ||
        ldb[g] < std::max<I>(1, tb[g] ? n[g] : k[g]) || ldc[g] < std::max<I>(1, m[g]))
      return CUBLAS_STATUS_INVALID_VALUE;
    total_m += std::int64_t{m[g]} * sizes[g];
    total_n += std::int64_t{n[g]} * sizes[g];
    count += sizes[g];
    flops += 1.0 * m[g] * n[g] * k[g] * sizes[g];
    same_m &= m[g] == m[0], same_n &= n[g] == n[0], same_k &= k[g] == k[0];
  }
  if (count == 0 || flops == 0) return CUBLAS_STATUS_SUCCESS;

  maya::Gemm gemm;
  gemm.a = maya::shim::dtype_of(type_a), gemm.b = maya::shim::dtype_of(type_b),
  gemm.d = maya::shim::dtype_of(type_c);
  gemm.compute = rate_of(*own, gemm.a, compute);
  gemm.transpose_a = ta[0] != CUBLAS_OP_N, gemm.transpose_b = tb[0] != CUBLAS_OP_N;
  gemm.lda = lda[0], gemm.ldb = ldb[0], gemm.ldd = ldc[0];
  gemm.groups = count;
  gemm.k = k[0];
  if (same_n || !same_m) {
    gemm.m = total_m, gemm.n = n[0];
  } else {  // tokens are columns: the transposed product has them as rows
    gemm.m = total_n, gemm.n = m[0];
    std::swap(gemm.a, gemm.b);
    std::swap(gemm.lda, gemm.ldb);
    bool left = gemm.transpose_a;
    gemm.transpose_a = !gemm.transpose_b, gemm.transpose_b = !left;
  }
  if (!same_k || (!same_m && !same_n))
    gemm.k = std::max<std::int64_t>(1, std::llround(flops / (1.0 * gemm.m * gemm.n)));
  return status_of(session::submit(own->stream, gemm, name));
}

}  // namespace

extern "C" {

#define MAYA_GROUPED(L, TYPE, COMPUTE, SUFFIX, I)                                              \
  cublasStatus_t cublas##L##gemmGroupedBatched##SUFFIX(                                        \
      cublasHandle_t handle, const cublasOperation_t ta[], const cublasOperation_t tb[],       \
      const I m[], const I n[], const I k[], const void*, const void* const[], const I lda[],  \
      const void* const[], const I ldb[], const void* beta, void* const[], const I ldc[],      \
      I groups, const I sizes[]) {                                                             \
    return grouped<I>(handle, "cublas" #L "gemmGroupedBatched" #SUFFIX, ta, tb, m, n, k, TYPE, \
                      lda, TYPE, ldb, beta, TYPE, ldc, groups, sizes, COMPUTE);                \
  }
MAYA_GROUPED(S, CUDA_R_32F, CUBLAS_COMPUTE_32F, , int)
MAYA_GROUPED(S, CUDA_R_32F, CUBLAS_COMPUTE_32F, _64, std::int64_t)
MAYA_GROUPED(D, CUDA_R_64F, CUBLAS_COMPUTE_64F, , int)
MAYA_GROUPED(D, CUDA_R_64F, CUBLAS_COMPUTE_64F, _64, std::int64_t)

#define MAYA_GROUPED_EX(SUFFIX, I)                                                                \
  cublasStatus_t cublasGemmGroupedBatchedEx##SUFFIX(                                              \
      cublasHandle_t handle, const cublasOperation_t ta[], const cublasOperation_t tb[],          \
      const I m[], const I n[], const I k[], const void*, const void* const[],                    \
      cudaDataType_t type_a, const I lda[], const void* const[], cudaDataType_t type_b,           \
      const I ldb[], const void* beta, void* const[], cudaDataType_t type_c, const I ldc[],       \
      I groups, const I sizes[], cublasComputeType_t compute) {                                   \
    return grouped<I>(handle, "cublasGemmGroupedBatchedEx" #SUFFIX, ta, tb, m, n, k, type_a, lda, \
                      type_b, ldb, beta, type_c, ldc, groups, sizes, compute);                    \
  }
MAYA_GROUPED_EX(, int)
MAYA_GROUPED_EX(_64, std::int64_t)

}  // extern "C"
