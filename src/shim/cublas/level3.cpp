// Matrix products with structure (symmetric, triangular), triangular solves, and element-wise
// matrix operations.
//
// A routine that computes one triangle does half a product: the op has half the columns.
#include "shim/cublas/letters.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
using namespace maya;

namespace {

bool bad_side(int side) { return side != CUBLAS_SIDE_LEFT && side != CUBLAS_SIDE_RIGHT; }

cublasStatus_t symmetric_product(Handle& own, const char* name, DType type, int side,
                                 std::int64_t m, std::int64_t n, std::int64_t lda, std::int64_t ldb,
                                 void* c, std::int64_t ldc) {
  std::int64_t k = side == CUBLAS_SIDE_LEFT ? m : n;
  if (m < 0 || n < 0 || bad_side(side) || lda < std::max<std::int64_t>(1, k) ||
      ldb < std::max<std::int64_t>(1, m) || ldc < std::max<std::int64_t>(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return launch(own, name, as_gemm(own, type, m, n, k, lda, ldb, ldc), type, {c, m, n, ldc});
}

cublasStatus_t rank_k(Handle& own, const char* name, DType type, int operation, std::int64_t n,
                      std::int64_t k, std::int64_t lda, void* c, std::int64_t ldc, int products) {
  if (n < 0 || k < 0 || lda < std::max<std::int64_t>(1, operation ? k : n) ||
      ldc < std::max<std::int64_t>(1, n))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  Gemm gemm = as_gemm(own, type, n, (n + 1) / 2, k * products, lda, lda, ldc);
  gemm.transpose_a = operation != CUBLAS_OP_N, gemm.transpose_b = operation == CUBLAS_OP_N;
  return launch(own, name, gemm, type, {c, n, n, ldc});
}

cublasStatus_t triangular_product(Handle& own, const char* name, DType type, int side,
                                  std::int64_t m, std::int64_t n, std::int64_t lda,
                                  std::int64_t ldb, void* c, std::int64_t ldc) {
  if (m < 0 || n < 0 || bad_side(side)) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  std::int64_t k = ((side == CUBLAS_SIDE_LEFT ? m : n) + 1) / 2;
  return launch(own, name, as_gemm(own, type, m, n, k, lda, ldb, ldc), type, {c, m, n, ldc});
}

cublasStatus_t triangular_solve(Handle& own, const char* name, DType type, int side, std::int64_t m,
                                std::int64_t n, std::int64_t lda, void* b, std::int64_t ldb,
                                std::int64_t batch) {
  std::int64_t order = side == CUBLAS_SIDE_LEFT ? m : n;
  if (m < 0 || n < 0 || batch < 0 || bad_side(side) || lda < std::max<std::int64_t>(1, order) ||
      ldb < std::max<std::int64_t>(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  return launch(own, name, solver(type, m, n, batch, 1.0 * order * m * n), type, {b, m, n, ldb});
}

cublasStatus_t elementwise(Handle& own, const char* name, DType type, std::int64_t m,
                           std::int64_t n, int inputs, void* c, std::int64_t ldc) {
  if (m < 0 || n < 0 || ldc < std::max<std::int64_t>(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  return launch(own, name, pointwise(type, m * n, inputs, 1, inputs, true), type, {c, m, n, ldc});
}

}  // namespace

extern "C" {

#define MAYA_SYMM(FUNCTION, L, SUFFIX, I)                                                        \
  cublasStatus_t cublas##FUNCTION##SUFFIX(                                                       \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, I m, I n, const void*,     \
      const void*, I lda, const void*, I ldb, const void*, void* c, I ldc) {                     \
    MAYA_CUBLAS_ENTER(handle);                                                                   \
    return symmetric_product(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, side, m, n, lda, ldb, \
                             c, ldc);                                                            \
  }
#define MAYA_SYRK(FUNCTION, L, SUFFIX, I)                                                          \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, cublasFillMode_t,                 \
                                          cublasOperation_t t, I n, I k, const void*, const void*, \
                                          I lda, const void*, void* c, I ldc) {                    \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return rank_k(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, t, n, k, lda, c, ldc, 1);          \
  }
#define MAYA_SYR2K(FUNCTION, L, PRODUCTS, SUFFIX, I)                                               \
  cublasStatus_t cublas##FUNCTION##SUFFIX(cublasHandle_t handle, cublasFillMode_t,                 \
                                          cublasOperation_t t, I n, I k, const void*, const void*, \
                                          I lda, const void*, I, const void*, void* c, I ldc) {    \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return rank_k(*own, "cublas" #FUNCTION #SUFFIX, kLetter##L, t, n, k, lda, c, ldc, PRODUCTS);   \
  }
#define MAYA_BOTH(M, FUNCTION, L) M(FUNCTION, L, _v2, int) M(FUNCTION, L, _v2_64, std::int64_t)
#define MAYA_BOTH_2K(FUNCTION, L) \
  MAYA_SYR2K(FUNCTION, L, 2, _v2, int) MAYA_SYR2K(FUNCTION, L, 2, _v2_64, std::int64_t)
#define MAYA_BOTH_KX(FUNCTION, L) \
  MAYA_SYR2K(FUNCTION, L, 1, , int) MAYA_SYR2K(FUNCTION, L, 1, _64, std::int64_t)
MAYA_BOTH(MAYA_SYMM, Ssymm, S)
MAYA_BOTH(MAYA_SYMM, Dsymm, D)
MAYA_BOTH(MAYA_SYMM, Csymm, C)
MAYA_BOTH(MAYA_SYMM, Zsymm, Z)
MAYA_BOTH(MAYA_SYMM, Chemm, C)
MAYA_BOTH(MAYA_SYMM, Zhemm, Z)
MAYA_BOTH(MAYA_SYRK, Ssyrk, S)
MAYA_BOTH(MAYA_SYRK, Dsyrk, D)
MAYA_BOTH(MAYA_SYRK, Csyrk, C)
MAYA_BOTH(MAYA_SYRK, Zsyrk, Z)
MAYA_BOTH(MAYA_SYRK, Cherk, C)
MAYA_BOTH(MAYA_SYRK, Zherk, Z)
MAYA_BOTH_2K(Ssyr2k, S)
MAYA_BOTH_2K(Dsyr2k, D)
MAYA_BOTH_2K(Csyr2k, C)
MAYA_BOTH_2K(Zsyr2k, Z)
MAYA_BOTH_2K(Cher2k, C)
MAYA_BOTH_2K(Zher2k, Z)
MAYA_BOTH_KX(Ssyrkx, S)
MAYA_BOTH_KX(Dsyrkx, D)
MAYA_BOTH_KX(Csyrkx, C)
MAYA_BOTH_KX(Zsyrkx, Z)
MAYA_BOTH_KX(Cherkx, C)
MAYA_BOTH_KX(Zherkx, Z)

#define MAYA_TRMM(L, SUFFIX, I)                                                                   \
  cublasStatus_t cublas##L##trmm##SUFFIX(cublasHandle_t handle, cublasSideMode_t side,            \
                                         cublasFillMode_t, cublasOperation_t, cublasDiagType_t,   \
                                         I m, I n, const void*, const void*, I lda, const void*,  \
                                         I ldb, void* c, I ldc) {                                 \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    return triangular_product(*own, "cublas" #L "trmm" #SUFFIX, kLetter##L, side, m, n, lda, ldb, \
                              c, ldc);                                                            \
  }
#define MAYA_TRSM(L, SUFFIX, I)                                                                    \
  cublasStatus_t cublas##L##trsm##SUFFIX(                                                          \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, cublasOperation_t,           \
      cublasDiagType_t, I m, I n, const void*, const void*, I lda, void* b, I ldb) {               \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    return triangular_solve(*own, "cublas" #L "trsm" #SUFFIX, kLetter##L, side, m, n, lda, b, ldb, \
                            1);                                                                    \
  }
#define MAYA_TRSM_BATCHED(L, SUFFIX, I)                                                           \
  cublasStatus_t cublas##L##trsmBatched##SUFFIX(                                                  \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t, cublasOperation_t,          \
      cublasDiagType_t, I m, I n, const void*, const void* const*, I lda, void* const*, I ldb,    \
      I batch) {                                                                                  \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    return triangular_solve(*own, "cublas" #L "trsmBatched" #SUFFIX, kLetter##L, side, m, n, lda, \
                            nullptr, ldb, batch);                                                 \
  }
MAYA_LETTERS_V2(MAYA_TRMM)
MAYA_LETTERS_V2(MAYA_TRSM)
MAYA_LETTERS(MAYA_TRSM_BATCHED)

#define MAYA_GEAM(L, SUFFIX, I)                                                                 \
  cublasStatus_t cublas##L##geam##SUFFIX(                                                       \
      cublasHandle_t handle, cublasOperation_t, cublasOperation_t, I m, I n, const void* alpha, \
      const void*, I, const void* beta, const void*, I, void* c, I ldc) {                       \
    MAYA_CUBLAS_ENTER(handle);                                                                  \
    if (!alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;                                    \
    return elementwise(*own, "cublas" #L "geam" #SUFFIX, kLetter##L, m, n, 2, c, ldc);          \
  }
#define MAYA_DGMM(L, SUFFIX, I)                                                                  \
  cublasStatus_t cublas##L##dgmm##SUFFIX(cublasHandle_t handle, cublasSideMode_t side, I m, I n, \
                                         const void*, I, const void*, I, void* c, I ldc) {       \
    MAYA_CUBLAS_ENTER(handle);                                                                   \
    if (bad_side(side)) return CUBLAS_STATUS_INVALID_VALUE;                                      \
    return elementwise(*own, "cublas" #L "dgmm" #SUFFIX, kLetter##L, m, n, 1, c, ldc);           \
  }
MAYA_LETTERS(MAYA_GEAM)
MAYA_LETTERS(MAYA_DGMM)

}  // extern "C"
