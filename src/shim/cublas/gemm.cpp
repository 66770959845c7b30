// The gemm entry points: typed and Ex, plain, strided batched and batched by pointers, 32- and
// 64-bit.
#include "shim/cublas/product.h"

using namespace maya::abi;
using namespace maya::shim::cublas;

namespace {

// `int` of the gemm of that letter: element type and the compute type the plain routines imply.
constexpr int kElementS = CUDA_R_32F, kElementD = CUDA_R_64F, kElementC = CUDA_C_32F,
              kElementZ = CUDA_C_64F, kElementH = CUDA_R_16F;
constexpr int kComputeS = CUBLAS_COMPUTE_32F, kComputeD = CUBLAS_COMPUTE_64F,
              kComputeC = CUBLAS_COMPUTE_32F, kComputeZ = CUBLAS_COMPUTE_64F,
              kComputeH = CUBLAS_COMPUTE_16F;

}  // namespace

extern "C" {

#define MAYA_GEMM(L, NAME, I)                                                                      \
  cublasStatus_t NAME(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, \
                      I k, const void* alpha, const void*, I lda, const void*, I ldb,              \
                      const void* beta, void* c, I ldc) {                                          \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return multiply(*own, #NAME,                                                                   \
                    {ta, tb, m, n, k, alpha, kElement##L, lda, kElement##L, ldb, beta, c,          \
                     kElement##L, ldc, kCompute##L});                                              \
  }
#define MAYA_GEMM_STRIDED(L, NAME, I)                                                              \
  cublasStatus_t NAME(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, \
                      I k, const void* alpha, const void*, I lda, long long, const void*, I ldb,   \
                      long long, const void* beta, void* c, I ldc, long long stride_c, I batch) {  \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return multiply(*own, #NAME,                                                                   \
                    {ta, tb, m, n, k, alpha, kElement##L, lda, kElement##L, ldb, beta, c,          \
                     kElement##L, ldc, kCompute##L, batch, stride_c});                             \
  }
#define MAYA_GEMM_BATCHED(L, NAME, I)                                                              \
  cublasStatus_t NAME(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, \
                      I k, const void* alpha, const void* const*, I lda, const void* const*,       \
                      I ldb, const void* beta, void* const*, I ldc, I batch) {                     \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return multiply(*own, #NAME,                                                                   \
                    {ta, tb, m, n, k, alpha, kElement##L, lda, kElement##L, ldb, beta, nullptr,    \
                     kElement##L, ldc, kCompute##L, batch});                                       \
  }
#define MAYA_GEMM_LETTER(L)                                            \
  MAYA_GEMM_STRIDED(L, cublas##L##gemmStridedBatched, int)             \
  MAYA_GEMM_STRIDED(L, cublas##L##gemmStridedBatched_64, std::int64_t) \
  MAYA_GEMM_BATCHED(L, cublas##L##gemmBatched, int)                    \
  MAYA_GEMM_BATCHED(L, cublas##L##gemmBatched_64, std::int64_t)

MAYA_GEMM(S, cublasSgemm_v2, int)
MAYA_GEMM(S, cublasSgemm_v2_64, std::int64_t)
MAYA_GEMM(D, cublasDgemm_v2, int)
MAYA_GEMM(D, cublasDgemm_v2_64, std::int64_t)
MAYA_GEMM(C, cublasCgemm_v2, int)
MAYA_GEMM(C, cublasCgemm_v2_64, std::int64_t)
MAYA_GEMM(Z, cublasZgemm_v2, int)
MAYA_GEMM(Z, cublasZgemm_v2_64, std::int64_t)
MAYA_GEMM(H, cublasHgemm, int)
MAYA_GEMM(H, cublasHgemm_64, std::int64_t)
MAYA_GEMM(C, cublasCgemm3m, int)
MAYA_GEMM(C, cublasCgemm3m_64, std::int64_t)
MAYA_GEMM(Z, cublasZgemm3m, int)
MAYA_GEMM(Z, cublasZgemm3m_64, std::int64_t)
MAYA_GEMM_LETTER(S)
MAYA_GEMM_LETTER(D)
MAYA_GEMM_LETTER(C)
MAYA_GEMM_LETTER(Z)
MAYA_GEMM_LETTER(H)
MAYA_GEMM_STRIDED(C, cublasCgemm3mStridedBatched, int)
MAYA_GEMM_STRIDED(C, cublasCgemm3mStridedBatched_64, std::int64_t)
MAYA_GEMM_BATCHED(C, cublasCgemm3mBatched, int)
MAYA_GEMM_BATCHED(C, cublasCgemm3mBatched_64, std::int64_t)

// Older Ex forms: the compute type is the letter's.
#define MAYA_GEMM_TYPED(L, NAME, I)                                                                \
  cublasStatus_t NAME(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, \
                      I k, const void* alpha, const void*, cudaDataType type_a, I lda,             \
                      const void*, cudaDataType type_b, I ldb, const void* beta, void* c,          \
                      cudaDataType type_c, I ldc) {                                                \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return multiply(                                                                               \
        *own, #NAME,                                                                               \
        {ta, tb, m, n, k, alpha, type_a, lda, type_b, ldb, beta, c, type_c, ldc, kCompute##L});    \
  }
MAYA_GEMM_TYPED(S, cublasSgemmEx, int)
MAYA_GEMM_TYPED(S, cublasSgemmEx_64, std::int64_t)
MAYA_GEMM_TYPED(C, cublasCgemmEx, int)
MAYA_GEMM_TYPED(C, cublasCgemmEx_64, std::int64_t)
MAYA_GEMM_TYPED(C, cublasCgemm3mEx, int)
MAYA_GEMM_TYPED(C, cublasCgemm3mEx_64, std::int64_t)

#define MAYA_GEMM_EX(SUFFIX, I)                                                                    \
  cublasStatus_t cublasGemmEx##SUFFIX(                                                             \
      cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, I k,            \
      const void* alpha, const void*, cudaDataType type_a, I lda, const void*,                     \
      cudaDataType type_b, I ldb, const void* beta, void* c, cudaDataType type_c, I ldc,           \
      cublasComputeType_t compute, cublasGemmAlgo_t) {                                             \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return multiply(                                                                               \
        *own, "cublasGemmEx" #SUFFIX,                                                              \
        {ta, tb, m, n, k, alpha, type_a, lda, type_b, ldb, beta, c, type_c, ldc, compute});        \
  }                                                                                                \
  cublasStatus_t cublasGemmStridedBatchedEx##SUFFIX(                                               \
      cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, I k,            \
      const void* alpha, const void*, cudaDataType type_a, I lda, long long, const void*,          \
      cudaDataType type_b, I ldb, long long, const void* beta, void* c, cudaDataType type_c,       \
      I ldc, long long stride_c, I batch, cublasComputeType_t compute, cublasGemmAlgo_t) {         \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return multiply(*own, "cublasGemmStridedBatchedEx" #SUFFIX,                                    \
                    {ta, tb, m, n, k, alpha, type_a, lda, type_b, ldb, beta, c, type_c, ldc,       \
                     compute, batch, stride_c});                                                   \
  }                                                                                                \
  cublasStatus_t cublasGemmBatchedEx##SUFFIX(                                                      \
      cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, I m, I n, I k,            \
      const void* alpha, const void* const*, cudaDataType type_a, I lda, const void* const*,       \
      cudaDataType type_b, I ldb, const void* beta, void* const*, cudaDataType type_c, I ldc,      \
      I batch, cublasComputeType_t compute, cublasGemmAlgo_t) {                                    \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return multiply(*own, "cublasGemmBatchedEx" #SUFFIX,                                           \
                    {ta, tb, m, n, k, alpha, type_a, lda, type_b, ldb, beta, nullptr, type_c, ldc, \
                     compute, batch});                                                             \
  }
MAYA_GEMM_EX(, int)
MAYA_GEMM_EX(_64, std::int64_t)

}  // extern "C"
