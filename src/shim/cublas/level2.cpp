// Matrix times vector and rank updates. All are bound by reading the matrix once.
#include "shim/cublas/letters.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
using namespace maya;

namespace {

// y = A·x over a matrix of rows × cols.
cublasStatus_t matvec(Handle& own, const char* name, DType type, int operation, std::int64_t rows,
                      std::int64_t cols, std::int64_t lda, void* y, std::int64_t incy,
                      std::int64_t batch = 1) {
  if (rows < 0 || cols < 0 || incy == 0 || lda < std::max<std::int64_t>(1, rows) || operation < 0 ||
      operation > 2)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || cols == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  std::int64_t out = operation ? cols : rows, inner = operation ? rows : cols;
  Gemm gemm = as_gemm(own, type, out, 1, inner, lda, inner, out, batch);
  gemm.transpose_a = operation != 0;
  return launch(own, name, gemm, type, {y, 1, out, incy});
}

// A += x·yᵀ: reads and writes `elements` of A.
cublasStatus_t rank_update(Handle& own, const char* name, DType type, std::int64_t elements,
                           void* a, std::int64_t rows, std::int64_t cols, std::int64_t lda,
                           int flops) {
  if (rows < 0 || cols < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (elements == 0) return CUBLAS_STATUS_SUCCESS;
  return launch(own, name, pointwise(type, elements, 1, 1, flops, true), type,
                {a, rows, cols, lda});
}

cublasStatus_t triangular(Handle& own, const char* name, DType type, std::int64_t n,
                          std::int64_t lda, void* x, std::int64_t incx, bool solve) {
  if (n < 0 || incx == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  if (solve) return launch(own, name, solver(type, n, 1, 1, 1.0 * n * n), type, {x, 1, n, incx});
  return launch(own, name, as_gemm(own, type, n, 1, (n + 1) / 2, lda, n, n), type, {x, 1, n, incx});
}

}  // namespace

extern "C" {

#define MAYA_GEMV(L, SUFFIX, I)                                                                 \
  cublasStatus_t cublas##L##gemv##SUFFIX(cublasHandle_t handle, cublasOperation_t t, I m, I n,  \
                                         const void* alpha, const void*, I lda, const void*, I, \
                                         const void* beta, void* y, I incy) {                   \
    MAYA_CUBLAS_ENTER(handle);                                                                  \
    if (!alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;                                    \
    return matvec(*own, "cublas" #L "gemv" #SUFFIX, kLetter##L, t, m, n, lda, y, incy);         \
  }
MAYA_LETTERS_V2(MAYA_GEMV)

#define MAYA_GEMV_STRIDED(NAME, TYPE, I)                                                     \
  cublasStatus_t NAME(cublasHandle_t handle, cublasOperation_t t, I m, I n, const void*,     \
                      const void*, I lda, long long, const void*, I, long long, const void*, \
                      void* y, I incy, long long, I batch) {                                 \
    MAYA_CUBLAS_ENTER(handle);                                                               \
    return matvec(*own, #NAME, TYPE, t, m, n, lda, y, incy, batch);                          \
  }
#define MAYA_GEMV_BATCHED(NAME, TYPE, I)                                                           \
  cublasStatus_t NAME(cublasHandle_t handle, cublasOperation_t t, I m, I n, const void*,           \
                      const void* const*, I lda, const void* const*, I, const void*, void* const*, \
                      I incy, I batch) {                                                           \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return matvec(*own, #NAME, TYPE, t, m, n, lda, nullptr, incy, batch);                          \
  }
#define MAYA_GEMV_BATCHES(PREFIX, TYPE)                                        \
  MAYA_GEMV_STRIDED(cublas##PREFIX##gemvStridedBatched, TYPE, int)             \
  MAYA_GEMV_STRIDED(cublas##PREFIX##gemvStridedBatched_64, TYPE, std::int64_t) \
  MAYA_GEMV_BATCHED(cublas##PREFIX##gemvBatched, TYPE, int)                    \
  MAYA_GEMV_BATCHED(cublas##PREFIX##gemvBatched_64, TYPE, std::int64_t)
MAYA_GEMV_BATCHES(S, DType::f32)
MAYA_GEMV_BATCHES(D, DType::f64)
MAYA_GEMV_BATCHES(C, DType::c64)
MAYA_GEMV_BATCHES(Z, DType::c128)
MAYA_GEMV_BATCHES(HSH, DType::f16)
MAYA_GEMV_BATCHES(HSS, DType::f16)
MAYA_GEMV_BATCHES(TST, DType::bf16)
MAYA_GEMV_BATCHES(TSS, DType::bf16)

#define MAYA_SYMV(FUNCTION, L, SUFFIX, I)                                                  \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, cublasFillMode_t, I n,    \
                                          const void*, const void*, I lda, const void*, I, \
                                          const void*, void* y, I incy) {                  \
    MAYA_CUBLAS_ENTER(handle);                                                             \
    return matvec(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, 0, n, n, lda, y, incy);    \
  }
#define MAYA_SYMV_BOTH(FUNCTION, L) \
  MAYA_SYMV(FUNCTION, L, _v2, int) MAYA_SYMV(FUNCTION, L, _v2_64, std::int64_t)
MAYA_SYMV_BOTH(Ssymv, S)
MAYA_SYMV_BOTH(Dsymv, D)
MAYA_SYMV_BOTH(Csymv, C)
MAYA_SYMV_BOTH(Zsymv, Z)
MAYA_SYMV_BOTH(Chemv, C)
MAYA_SYMV_BOTH(Zhemv, Z)

// Band matrices: k diagonals on each side.
#define MAYA_SBMV(L, SUFFIX, I)                                                             \
  cublasStatus_t cublas##L##sbmv##SUFFIX(cublasHandle_t handle, cublasFillMode_t, I n, I k, \
                                         const void*, const void*, I lda, const void*, I,   \
                                         const void*, void* y, I incy) {                    \
    MAYA_CUBLAS_ENTER(handle);                                                              \
    if (n < 0 || k < 0) return CUBLAS_STATUS_INVALID_VALUE;                                 \
    if (n == 0) return CUBLAS_STATUS_SUCCESS;                                               \
    return launch(*own, "cublas" #L "sbmv" #SUFFIX,                                         \
                  as_gemm(*own, kLetter##L, n, 1, 2 * k + 1, lda, n, n), kLetter##L,        \
                  {y, 1, n, incy});                                                         \
  }
MAYA_V2(MAYA_SBMV, S)
MAYA_V2(MAYA_SBMV, D)

#define MAYA_TR_V(FUNCTION, L, SOLVE, SUFFIX, I)                                                 \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, cublasFillMode_t,               \
                                          cublasOperation_t, cublasDiagType_t, I n, const void*, \
                                          I lda, void* x, I incx) {                              \
    MAYA_CUBLAS_ENTER(handle);                                                                   \
    return triangular(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, n, lda, x, incx, SOLVE);     \
  }
#define MAYA_TR_V_BOTH(L)                            \
  MAYA_TR_V(L##trmv, L, false, _v2, int)             \
  MAYA_TR_V(L##trmv, L, false, _v2_64, std::int64_t) \
  MAYA_TR_V(L##trsv, L, true, _v2, int)              \
  MAYA_TR_V(L##trsv, L, true, _v2_64, std::int64_t)
MAYA_TR_V_BOTH(S)
MAYA_TR_V_BOTH(D)
MAYA_TR_V_BOTH(C)
MAYA_TR_V_BOTH(Z)

#define MAYA_GER(FUNCTION, L, SUFFIX, I)                                                           \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, I m, I n, const void*,            \
                                          const void*, I, const void*, I, void* a, I lda) {        \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return rank_update(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, std::int64_t{m} * n, a, m, n, \
                       lda, 2);                                                                    \
  }
#define MAYA_GER_BOTH(FUNCTION, L) \
  MAYA_GER(FUNCTION, L, _v2, int) MAYA_GER(FUNCTION, L, _v2_64, std::int64_t)
MAYA_GER_BOTH(Sger, S)
MAYA_GER_BOTH(Dger, D)
MAYA_GER_BOTH(Cgeru, C)
MAYA_GER_BOTH(Cgerc, C)
MAYA_GER_BOTH(Zgeru, Z)
MAYA_GER_BOTH(Zgerc, Z)

#define MAYA_SYR(FUNCTION, L, SUFFIX, I)                                                 \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, cublasFillMode_t, I n,  \
                                          const void*, const void*, I, void* a, I lda) { \
    MAYA_CUBLAS_ENTER(handle);                                                           \
    return rank_update(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L,                     \
                       std::int64_t{n} * (n + 1) / 2, a, n, n, lda, 2);                  \
  }
#define MAYA_SYR2(FUNCTION, L, SUFFIX, I)                                                       \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, cublasFillMode_t, I n,         \
                                          const void*, const void*, I, const void*, I, void* a, \
                                          I lda) {                                              \
    MAYA_CUBLAS_ENTER(handle);                                                                  \
    return rank_update(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L,                            \
                       std::int64_t{n} * (n + 1) / 2, a, n, n, lda, 4);                         \
  }
#define MAYA_SYR_BOTH(FUNCTION, L) \
  MAYA_SYR(FUNCTION, L, _v2, int) MAYA_SYR(FUNCTION, L, _v2_64, std::int64_t)
#define MAYA_SYR2_BOTH(FUNCTION, L) \
  MAYA_SYR2(FUNCTION, L, _v2, int) MAYA_SYR2(FUNCTION, L, _v2_64, std::int64_t)
MAYA_SYR_BOTH(Ssyr, S)
MAYA_SYR_BOTH(Dsyr, D)
MAYA_SYR_BOTH(Csyr, C)
MAYA_SYR_BOTH(Zsyr, Z)
MAYA_SYR_BOTH(Cher, C)
MAYA_SYR_BOTH(Zher, Z)
MAYA_SYR2_BOTH(Ssyr2, S)
MAYA_SYR2_BOTH(Dsyr2, D)
MAYA_SYR2_BOTH(Csyr2, C)
MAYA_SYR2_BOTH(Zsyr2, Z)
MAYA_SYR2_BOTH(Cher2, C)
MAYA_SYR2_BOTH(Zher2, Z)

}  // extern "C"
