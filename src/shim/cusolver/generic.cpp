// The 64-bit interface: one routine for all element types.
#include "shim/cusolver/factor.h"

using namespace maya::abi;
using namespace maya::shim::cusolver;
using I = std::int64_t;
using T = cudaDataType;

namespace {
constexpr bool vectors(int mode) { return mode == CUSOLVER_EIG_MODE_VECTOR; }
maya::DType type_of(int type) { return maya::shim::dtype_of(type); }
}  // namespace

extern "C" {

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, I m,
                                             I n, T type, const void*, I, T, std::size_t* device,
                                             std::size_t* host) {
  return scratch(handle, m * std::min(n, kBlock), type, device, host);
}
cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t, I m, I n, T type,
                                  void* a, I lda, I*, T, void*, std::size_t, void*, std::size_t,
                                  int* info) {
  return factor(as(handle), "cusolverDnXgetrf", type_of(type), m, n, 1, lu(m, n), {a, lda * n},
                info);
}
cusolverStatus_t cusolverDnXgetrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasOperation_t,
                                  I n, I nrhs, T, const void*, I, const I*, T type, void* b, I ldb,
                                  int* info) {
  return factor(as(handle), "cusolverDnXgetrs", type_of(type), n, nrhs, 1, 2.0 * n * n * nrhs,
                {b, ldb * nrhs}, info);
}
cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                             cublasFillMode_t, I n, T type, const void*, I, T,
                                             std::size_t* device, std::size_t* host) {
  return scratch(handle, n * kBlock, type, device, host);
}
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t,
                                  I n, T type, void* a, I lda, T, void*, std::size_t, void*,
                                  std::size_t, int* info) {
  return factor(as(handle), "cusolverDnXpotrf", type_of(type), n, n, 1, cholesky(n), {a, lda * n},
                info);
}
cusolverStatus_t cusolverDnXpotrs(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t,
                                  I n, I nrhs, T, const void*, I, T type, void* b, I ldb,
                                  int* info) {
  return factor(as(handle), "cusolverDnXpotrs", type_of(type), n, nrhs, 1, 2.0 * n * n * nrhs,
                {b, ldb * nrhs}, info);
}
cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t, I m,
                                             I n, T type, const void*, I, T, const void*, T,
                                             std::size_t* device, std::size_t* host) {
  return scratch(handle, std::max(m, n) * kBlock, type, device, host);
}
cusolverStatus_t cusolverDnXgeqrf(cusolverDnHandle_t handle, cusolverDnParams_t, I m, I n, T type,
                                  void* a, I lda, T, void*, T, void*, std::size_t, void*,
                                  std::size_t, int* info) {
  return factor(as(handle), "cusolverDnXgeqrf", type_of(type), m, n, 1, qr(m, n), {a, lda * n},
                info);
}
cusolverStatus_t cusolverDnXsytrs_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t, I n,
                                             I nrhs, T type, const void*, I, const I*, T, void*, I,
                                             std::size_t* device, std::size_t* host) {
  return scratch(handle, n * nrhs, type, device, host);
}
cusolverStatus_t cusolverDnXsytrs(cusolverDnHandle_t handle, cublasFillMode_t, I n, I nrhs, T type,
                                  const void*, I, const I*, T, void* b, I ldb, void*, std::size_t,
                                  void*, std::size_t, int* info) {
  return factor(as(handle), "cusolverDnXsytrs", type_of(type), n, nrhs, 1, 2.0 * n * n * nrhs,
                {b, ldb * nrhs}, info);
}
cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                             cusolverEigMode_t, cublasFillMode_t, I n, T type,
                                             const void*, I, T, const void*, T, std::size_t* device,
                                             std::size_t* host) {
  return scratch(handle, n * (2 * n + kBlock), type, device, host);
}
cusolverStatus_t cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t,
                                  cusolverEigMode_t mode, cublasFillMode_t, I n, T type, void* a,
                                  I lda, T, void*, T, void*, std::size_t, void*, std::size_t,
                                  int* info) {
  return factor(as(handle), "cusolverDnXsyevd", type_of(type), n, n, 1,
                eigenvalues(n, vectors(mode)), {a, lda * n}, info);
}
cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                                   cusolverEigMode_t, cublasFillMode_t, I n, T type,
                                                   const void*, I, T, const void*, T,
                                                   std::size_t* device, std::size_t* host,
                                                   I batch) {
  return scratch(handle, n * n * batch, type, device, host);
}
cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t,
                                        cusolverEigMode_t mode, cublasFillMode_t, I n, T type,
                                        void* a, I lda, T, void*, T, void*, std::size_t, void*,
                                        std::size_t, int* info, I batch) {
  return factor(as(handle), "cusolverDnXsyevBatched", type_of(type), n, n, batch,
                eigenvalues(n, vectors(mode)), {a, lda * n * batch}, info);
}
cusolverStatus_t cusolverDnXgesvd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                             signed char, signed char, I m, I n, T type,
                                             const void*, I, T, const void*, T, const void*, I, T,
                                             const void*, I, T, std::size_t* device,
                                             std::size_t* host) {
  return scratch(handle, std::min(m, n) * (m + n + kBlock), type, device, host);
}
cusolverStatus_t cusolverDnXgesvd(cusolverDnHandle_t handle, cusolverDnParams_t, signed char jobu,
                                  signed char, I m, I n, T type, void* a, I lda, T, void*, T, void*,
                                  I, T, void*, I, T, void*, std::size_t, void*, std::size_t,
                                  int* info) {
  return factor(as(handle), "cusolverDnXgesvd", type_of(type), m, n, 1,
                singular_values(m, n, jobu != 'N'), {a, lda * n}, info);
}
// General eigenvalues: Hessenberg reduction and QR iterations, about 25·n³ with vectors (Golub, Van
// Loan).
cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t,
                                            cusolverEigMode_t, cusolverEigMode_t, I n, T type,
                                            const void*, I, T, const void*, T, const void*, I, T,
                                            const void*, I, T, std::size_t* device,
                                            std::size_t* host) {
  return scratch(handle, n * (2 * n + kBlock), type, device, host);
}
cusolverStatus_t cusolverDnXgeev(cusolverDnHandle_t handle, cusolverDnParams_t,
                                 cusolverEigMode_t left, cusolverEigMode_t right, I n, T type,
                                 void* a, I lda, T, void*, T, void*, I, T, void*, I, T, void*,
                                 std::size_t, void*, std::size_t, int* info) {
  double flops = (vectors(left) || vectors(right) ? 25.0 : 10.0) * n * n * n;
  return factor(as(handle), "cusolverDnXgeev", type_of(type), n, n, 1, flops, {a, lda * n}, info);
}

}  // extern "C"
