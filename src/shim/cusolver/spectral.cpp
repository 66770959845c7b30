// Eigenvalues and singular values: divide and conquer, Jacobi, approximate, batched.
#include "session/host_memory.h"
#include "shim/cusolver/factor.h"

using namespace maya::abi;
using namespace maya::shim::cusolver;

#define MAYA_H cusolverDnHandle_t handle

extern "C" {

#define MAYA_EIGEN(L, EVD, EVJ)                                                                    \
  cusolverStatus_t cusolverDn##L##EVD##_bufferSize(MAYA_H, cusolverEigMode_t, cublasFillMode_t,    \
                                                   int n, const void*, int, const void*,           \
                                                   int* size) {                                    \
    return scratch(handle, std::int64_t{n} * (2 * n + kBlock), size);                              \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##EVD(MAYA_H, cusolverEigMode_t mode, cublasFillMode_t, int n,     \
                                      void* a, int lda, void*, void*, int, int* info) {            \
    return factor(as(handle), "cusolverDn" #L#EVD, kLetter##L, n, n, 1,                            \
                  eigenvalues(n, mode == CUSOLVER_EIG_MODE_VECTOR), {a, std::int64_t{lda} * n},    \
                  info);                                                                           \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##EVJ##_bufferSize(MAYA_H, cusolverEigMode_t, cublasFillMode_t,    \
                                                   int n, const void*, int, const void*,           \
                                                   int* size, syevjInfo_t) {                       \
    return scratch(handle, std::int64_t{n} * (n + kBlock), size);                                  \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##EVJ(MAYA_H, cusolverEigMode_t, cublasFillMode_t, int n, void* a, \
                                      int lda, void*, void*, int, int* info, syevjInfo_t) {        \
    return factor(as(handle), "cusolverDn" #L#EVJ, kLetter##L, n, n, 1, 2 * eigenvalues(n, true),  \
                  {a, std::int64_t{lda} * n}, info);                                               \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##EVJ##Batched_bufferSize(                                         \
      MAYA_H, cusolverEigMode_t, cublasFillMode_t, int n, const void*, int, const void*,           \
      int* size, syevjInfo_t, int batch) {                                                         \
    return scratch(handle, std::int64_t{n} * n * batch, size);                                     \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##EVJ##Batched(MAYA_H, cusolverEigMode_t, cublasFillMode_t, int n, \
                                               void* a, int lda, void*, void*, int, int* info,     \
                                               syevjInfo_t, int batch) {                           \
    return factor(as(handle), "cusolverDn" #L#EVJ "Batched", kLetter##L, n, n, batch,              \
                  2 * eigenvalues(n, true), {a, std::int64_t{lda} * n * batch}, info);             \
  }
MAYA_EIGEN(S, syevd, syevj)
MAYA_EIGEN(D, syevd, syevj)
MAYA_EIGEN(C, heevd, heevj)
MAYA_EIGEN(Z, heevd, heevj)

#define MAYA_SVD(L)                                                                                \
  cusolverStatus_t cusolverDn##L##gesvd_bufferSize(MAYA_H, int m, int n, int* size) {              \
    return scratch(handle, std::int64_t{std::min(m, n)} * (m + n + kBlock), size);                 \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##gesvd(MAYA_H, signed char jobu, signed char, int m, int n,       \
                                        void* a, int lda, void*, void*, int, void*, int, void*,    \
                                        int, void*, int* info) {                                   \
    return factor(as(handle), "cusolverDn" #L "gesvd", kLetter##L, m, n, 1,                        \
                  singular_values(m, n, jobu != 'N'), {a, std::int64_t{lda} * n}, info);           \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##gesvdj_bufferSize(                                               \
      MAYA_H, cusolverEigMode_t, int, int m, int n, const void*, int, const void*, const void*,    \
      int, const void*, int, int* size, gesvdjInfo_t) {                                            \
    return scratch(handle, std::int64_t{std::min(m, n)} * (m + n + kBlock), size);                 \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##gesvdj(MAYA_H, cusolverEigMode_t, int, int m, int n, void* a,    \
                                         int lda, void*, void*, int, void*, int, void*, int,       \
                                         int* info, gesvdjInfo_t) {                                \
    return factor(as(handle), "cusolverDn" #L "gesvdj", kLetter##L, m, n, 1,                       \
                  2 * singular_values(m, n, true), {a, std::int64_t{lda} * n}, info);              \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##gesvdjBatched_bufferSize(                                        \
      MAYA_H, cusolverEigMode_t, int m, int n, const void*, int, const void*, const void*, int,    \
      const void*, int, int* size, gesvdjInfo_t, int batch) {                                      \
    return scratch(handle, std::int64_t{std::min(m, n)} * (m + n) * batch, size);                  \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##gesvdjBatched(MAYA_H, cusolverEigMode_t, int m, int n, void* a,  \
                                                int lda, void*, void*, int, void*, int, void*,     \
                                                int, int* info, gesvdjInfo_t, int batch) {         \
    return factor(as(handle), "cusolverDn" #L "gesvdjBatched", kLetter##L, m, n, batch,            \
                  2 * singular_values(m, n, true), {a, std::int64_t{lda} * n * batch}, info);      \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##gesvdaStridedBatched_bufferSize(                                 \
      MAYA_H, cusolverEigMode_t, int rank, int m, int n, const void*, int, long long, const void*, \
      long long, const void*, int, long long, const void*, int, long long, int* size, int batch) { \
    return scratch(handle, std::int64_t{rank} * (m + n) * batch, size);                            \
  }                                                                                                \
  cusolverStatus_t cusolverDn##L##gesvdaStridedBatched(                                            \
      MAYA_H, cusolverEigMode_t mode, int, int m, int n, const void*, int, long long, void*,       \
      long long, void*, int, long long, void*, int, long long, void*, int, int* info,              \
      double* residuals, int batch) {                                                              \
    if (residuals && batch > 0) {                                                                  \
      if (!maya::session::mapped(residuals, sizeof(double) * static_cast<std::size_t>(batch)))     \
        return CUSOLVER_STATUS_INVALID_VALUE;                                                      \
      std::fill_n(residuals, batch, 0.0);                                                          \
    }                                                                                              \
    return factor(as(handle), "cusolverDn" #L "gesvdaStridedBatched", kLetter##L, m, n, batch,     \
                  singular_values(m, n, mode == CUSOLVER_EIG_MODE_VECTOR), {}, info);              \
  }
MAYA_SVD(S)
MAYA_SVD(D)
MAYA_SVD(C)
MAYA_SVD(Z)

}  // extern "C"
