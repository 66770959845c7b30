// The typed dense routines: LU, Cholesky, QR, symmetric indefinite, bidiagonal, mixed-precision
// solves.
#include "shim/cusolver/factor.h"

using namespace maya::abi;
using namespace maya::shim::cusolver;

#define MAYA_H cusolverDnHandle_t handle

extern "C" {

#define MAYA_LU(L)                                                                                 \
  cusolverStatus_t cusolverDn##L##getrf_bufferSize(MAYA_H, int m, int n, void*, int, int* size) {  \
    return scratch(handle, std::int64_t{m} * std::min<std::int64_t>(n, kBlock), size);             \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##getrf(MAYA_H, int m, int n, void* a, int lda, void*,             \
                                        int* pivots, int* info) {                                  \
    if (pivots && as(handle) && std::min(m, n) > 0) {                                              \
      std::vector<int> order(static_cast<std::size_t>(std::min(m, n)));                            \
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i) + 1;           \
      maya::session::write_device(pivots, order.data(), order.size() * sizeof(int));               \
    }                                                                                              \
    return factor(as(handle), "cusolverDn" #L "getrf", kLetter##L, m, n, 1, lu(m, n),              \
                  {a, std::int64_t{lda} * n}, info);                                               \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##getrs(MAYA_H, cublasOperation_t, int n, int nrhs, const void*,   \
                                        int, const int*, void* b, int ldb, int* info) {            \
    return factor(as(handle), "cusolverDn" #L "getrs", kLetter##L, n, nrhs, 1, 2.0 * n * n * nrhs, \
                  {b, std::int64_t{ldb} * nrhs}, info);                                            \
  }
MAYA_LU(S)
MAYA_LU(D)
MAYA_LU(C)
MAYA_LU(Z)

#define MAYA_CHOLESKY(L)                                                                           \
  cusolverStatus_t cusolverDn##L##potrf_bufferSize(MAYA_H, cublasFillMode_t, int n, void*, int,    \
                                                   int* size) {                                    \
    return scratch(handle, std::int64_t{n} * kBlock, size);                                        \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##potrf(MAYA_H, cublasFillMode_t, int n, void* a, int lda, void*,  \
                                        int, int* info) {                                          \
    return factor(as(handle), "cusolverDn" #L "potrf", kLetter##L, n, n, 1, cholesky(n),           \
                  {a, std::int64_t{lda} * n}, info);                                               \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##potrfBatched(MAYA_H, cublasFillMode_t, int n, void**, int,       \
                                               int* info, int batch) {                             \
    return factor(as(handle), "cusolverDn" #L "potrfBatched", kLetter##L, n, n, batch,             \
                  cholesky(n), {}, info);                                                          \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##potrs(MAYA_H, cublasFillMode_t, int n, int nrhs, const void*,    \
                                        int, void* b, int ldb, int* info) {                        \
    return factor(as(handle), "cusolverDn" #L "potrs", kLetter##L, n, nrhs, 1, 2.0 * n * n * nrhs, \
                  {b, std::int64_t{ldb} * nrhs}, info);                                            \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##potrsBatched(MAYA_H, cublasFillMode_t, int n, int nrhs, void**,  \
                                               int, void**, int, int* info, int batch) {           \
    cusolverStatus_t status = factor(as(handle), "cusolverDn" #L "potrsBatched", kLetter##L, n,    \
                                     nrhs, batch, 2.0 * n * n * nrhs, {}, nullptr);                \
    int zero = 0;                                                                                  \
    if (info && as(handle)) maya::session::write_device(info, &zero, sizeof zero);                 \
    return status;                                                                                 \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##potri_bufferSize(MAYA_H, cublasFillMode_t, int n, void*, int,    \
                                                   int* size) {                                    \
    return scratch(handle, std::int64_t{n} * kBlock, size);                                        \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##potri(MAYA_H, cublasFillMode_t, int n, void* a, int lda, void*,  \
                                        int, int* info) {                                          \
    return factor(as(handle), "cusolverDn" #L "potri", kLetter##L, n, n, 1, 2 * cholesky(n),       \
                  {a, std::int64_t{lda} * n}, info);                                               \
  }
MAYA_CHOLESKY(S)
MAYA_CHOLESKY(D)
MAYA_CHOLESKY(C)
MAYA_CHOLESKY(Z)

#define MAYA_QR(L, ORG, ORM)                                                                       \
  cusolverStatus_t cusolverDn##L##geqrf_bufferSize(MAYA_H, int m, int n, void*, int, int* size) {  \
    return scratch(handle, std::int64_t{std::max(m, n)} * kBlock, size);                           \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##geqrf(MAYA_H, int m, int n, void* a, int lda, void*, void*, int, \
                                        int* info) {                                               \
    return factor(as(handle), "cusolverDn" #L "geqrf", kLetter##L, m, n, 1, qr(m, n),              \
                  {a, std::int64_t{lda} * n}, info);                                               \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##ORG##_bufferSize(MAYA_H, int, int n, int, const void*, int,      \
                                                   const void*, int* size) {                       \
    return scratch(handle, std::int64_t{n} * kBlock, size);                                        \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##ORG(MAYA_H, int m, int n, int k, void* a, int lda, const void*,  \
                                      void*, int, int* info) {                                     \
    return factor(as(handle), "cusolverDn" #L#ORG, kLetter##L, m, n, 1, apply_q(m, n, k),          \
                  {a, std::int64_t{lda} * n}, info);                                               \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##ORM##_bufferSize(MAYA_H, cublasSideMode_t, cublasOperation_t,    \
                                                   int m, int n, int, const void*, int,            \
                                                   const void*, const void*, int, int* size) {     \
    return scratch(handle, std::int64_t{std::max(m, n)} * kBlock, size);                           \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##ORM(MAYA_H, cublasSideMode_t side, cublasOperation_t, int m,     \
                                      int n, int k, const void*, int, const void*, void* c,        \
                                      int ldc, void*, int, int* info) {                            \
    double flops = side == CUBLAS_SIDE_LEFT ? apply_q(m, n, k) : apply_q(n, m, k);                 \
    return factor(as(handle), "cusolverDn" #L#ORM, kLetter##L, m, n, 1, flops,                     \
                  {c, std::int64_t{ldc} * n}, info);                                               \
  }
MAYA_QR(S, orgqr, ormqr)
MAYA_QR(D, orgqr, ormqr)
MAYA_QR(C, ungqr, unmqr)
MAYA_QR(Z, ungqr, unmqr)

#define MAYA_INDEFINITE(L)                                                                       \
  cusolverStatus_t cusolverDn##L##sytrf_bufferSize(MAYA_H, int n, void*, int, int* size) {       \
    return scratch(handle, std::int64_t{n} * kBlock, size);                                      \
  }                                                                                              \
  cusolverStatus_t cusolverDn##L##sytrf(MAYA_H, cublasFillMode_t, int n, void* a, int lda, int*, \
                                        void*, int, int* info) {                                 \
    return factor(as(handle), "cusolverDn" #L "sytrf", kLetter##L, n, n, 1, cholesky(n),         \
                  {a, std::int64_t{lda} * n}, info);                                             \
  }                                                                                              \
  cusolverStatus_t cusolverDn##L##gebrd_bufferSize(MAYA_H, int m, int n, int* size) {            \
    return scratch(handle, std::int64_t{m + n} * kBlock, size);                                  \
  }                                                                                              \
  cusolverStatus_t cusolverDn##L##gebrd(MAYA_H, int m, int n, void* a, int lda, void*, void*,    \
                                        void*, void*, void*, int, int* info) {                   \
    return factor(as(handle), "cusolverDn" #L "gebrd", kLetter##L, m, n, 1,                      \
                  singular_values(m, n, false), {a, std::int64_t{lda} * n}, info);               \
  }
MAYA_INDEFINITE(S)
MAYA_INDEFINITE(D)
MAYA_INDEFINITE(C)
MAYA_INDEFINITE(Z)

// Solves with iterative refinement: a factorization in the lower precision decides the time.
#define MAYA_REFINED(P, L)                                                                     \
  cusolverStatus_t cusolverDn##P##gesv_bufferSize(MAYA_H, int n, int nrhs, void*, int, int*,   \
                                                  void*, int, void*, int, void*,               \
                                                  std::size_t* bytes) {                        \
    if (!as(handle) || !bytes) return CUSOLVER_STATUS_INVALID_VALUE;                           \
    *bytes = static_cast<std::size_t>(                                                         \
        maya::shim::bytes_of(kLetter##L, std::int64_t{n} * (n + 2 * nrhs)));                   \
    return CUSOLVER_STATUS_SUCCESS;                                                            \
  }                                                                                            \
  cusolverStatus_t cusolverDn##P##gesv(MAYA_H, int n, int nrhs, void*, int, int*, void*, int,  \
                                       void* x, int ldx, void*, std::size_t, int* iterations,  \
                                       int* info) {                                            \
    if (iterations) *iterations = 1;                                                           \
    return factor(as(handle), "cusolverDn" #P "gesv", kLetter##L, n, n, 1,                     \
                  lu(n, n) + 4.0 * n * n * nrhs, {x, std::int64_t{ldx} * nrhs}, info);         \
  }                                                                                            \
  cusolverStatus_t cusolverDn##P##gels_bufferSize(MAYA_H, int m, int n, int nrhs, void*, int,  \
                                                  void*, int, void*, int, void*,               \
                                                  std::size_t* bytes) {                        \
    if (!as(handle) || !bytes) return CUSOLVER_STATUS_INVALID_VALUE;                           \
    *bytes = static_cast<std::size_t>(                                                         \
        maya::shim::bytes_of(kLetter##L, std::int64_t{m} * (n + 2 * nrhs)));                   \
    return CUSOLVER_STATUS_SUCCESS;                                                            \
  }                                                                                            \
  cusolverStatus_t cusolverDn##P##gels(MAYA_H, int m, int n, int nrhs, void*, int, void*, int, \
                                       void* x, int ldx, void*, std::size_t, int* iterations,  \
                                       int* info) {                                            \
    if (iterations) *iterations = 1;                                                           \
    return factor(as(handle), "cusolverDn" #P "gels", kLetter##L, m, n, 1,                     \
                  qr(m, n) + 4.0 * m * n * nrhs, {x, std::int64_t{ldx} * nrhs}, info);         \
  }
MAYA_REFINED(SS, S)
MAYA_REFINED(SH, S)
MAYA_REFINED(SX, S)
MAYA_REFINED(DD, D)
MAYA_REFINED(DS, D)
MAYA_REFINED(DH, D)
MAYA_REFINED(DX, D)
MAYA_REFINED(CC, C)
MAYA_REFINED(CK, C)
MAYA_REFINED(CY, C)
MAYA_REFINED(ZZ, Z)
MAYA_REFINED(ZC, Z)
MAYA_REFINED(ZK, Z)
MAYA_REFINED(ZY, Z)

}  // extern "C"
