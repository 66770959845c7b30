// Many small factorizations: LU, its inverse and solve, QR, least squares.
//
// Every matrix is taken as regular: info is 0, as for data nothing is known of.
#include <vector>

#include "shim/cublas/letters.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
using namespace maya;

namespace {

void clear_device(int* info, std::int64_t count) {
  // Of very many nothing need be stored: what nobody wrote reads as zero.
  constexpr std::int64_t most = 1 << 20;
  if (!info || count <= 0 || count > most) return;
  std::vector<int> zeros(static_cast<std::size_t>(count), 0);
  session::write_device(info, zeros.data(), zeros.size() * sizeof(int));
}

cublasStatus_t factor(Handle& own, const char* name, DType type, std::int64_t m, std::int64_t n,
                      std::int64_t batch, double flops, int* device_info,
                      int* host_info = nullptr) {
  if (m < 0 || n < 0 || batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (host_info) *host_info = 0;
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  cublasStatus_t status =
      status_of(session::submit(own.stream, solver(type, m, n, batch, flops), name));
  clear_device(device_info, batch);
  return status;
}

double cube(double n) { return n * n * n; }

}  // namespace

extern "C" {

// FLOP counts: LAPACK Working Note 41 (Blackford, Dongarra), multiply and add counted apart.
#define MAYA_LU(L)                                                                                \
  cublasStatus_t cublas##L##getrfBatched(cublasHandle_t handle, int n, void* const*, int lda,     \
                                         int*, int* info, int batch) {                            \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    if (lda < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE;                                 \
    return factor(*own, "cublas" #L "getrfBatched", kLetter##L, n, n, batch, cube(n) * 2 / 3,     \
                  info);                                                                          \
  }                                                                                               \
  cublasStatus_t cublas##L##getriBatched(cublasHandle_t handle, int n, const void* const*,        \
                                         int lda, const int*, void* const*, int ldc, int* info,   \
                                         int batch) {                                             \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    if (lda < std::max(1, n) || ldc < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE;         \
    return factor(*own, "cublas" #L "getriBatched", kLetter##L, n, n, batch, cube(n) * 4 / 3,     \
                  info);                                                                          \
  }                                                                                               \
  cublasStatus_t cublas##L##getrsBatched(cublasHandle_t handle, cublasOperation_t, int n,         \
                                         int nrhs, const void* const*, int lda, const int*,       \
                                         void* const*, int ldb, int* info, int batch) {           \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    if (!info) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    *info = n < 0                  ? -2                                                           \
            : nrhs < 0             ? -3                                                           \
            : lda < std::max(1, n) ? -5                                                           \
            : ldb < std::max(1, n) ? -8                                                           \
            : batch < 0            ? -10                                                          \
                                   : 0;                                                                      \
    if (*info) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    return factor(*own, "cublas" #L "getrsBatched", kLetter##L, n, nrhs, batch,                   \
                  2.0 * n * n * nrhs, nullptr, info);                                             \
  }                                                                                               \
  cublasStatus_t cublas##L##matinvBatched(cublasHandle_t handle, int n, const void* const*,       \
                                          int lda, void* const*, int ldi, int* info, int batch) { \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    if (n > 32 || lda < std::max(1, n) || ldi < std::max(1, n))                                   \
      return CUBLAS_STATUS_INVALID_VALUE;                                                         \
    return factor(*own, "cublas" #L "matinvBatched", kLetter##L, n, n, batch, 2 * cube(n), info); \
  }                                                                                               \
  cublasStatus_t cublas##L##geqrfBatched(cublasHandle_t handle, int m, int n, void* const*,       \
                                         int lda, void* const*, int* info, int batch) {           \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    if (!info) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    *info = m < 0 ? -1 : n < 0 ? -2 : lda < std::max(1, m) ? -4 : batch < 0 ? -7 : 0;             \
    if (*info) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    double k = std::min(m, n), l = std::max(m, n);                                                \
    return factor(*own, "cublas" #L "geqrfBatched", kLetter##L, m, n, batch,                      \
                  2 * k * k * (l - k / 3), nullptr, info);                                        \
  }                                                                                               \
  cublasStatus_t cublas##L##gelsBatched(cublasHandle_t handle, cublasOperation_t, int m, int n,   \
                                        int nrhs, void* const*, int lda, void* const*, int ldc,   \
                                        int* info, int* device_info, int batch) {                 \
    MAYA_CUBLAS_ENTER(handle);                                                                    \
    if (!info) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    *info = m < 0                  ? -2                                                           \
            : n < 0                ? -3                                                           \
            : nrhs < 0             ? -4                                                           \
            : lda < std::max(1, m) ? -6                                                           \
            : ldc < std::max(1, m) ? -8                                                           \
                                   : 0;                                                           \
    if (*info) return CUBLAS_STATUS_INVALID_VALUE;                                                \
    if (m < n) return CUBLAS_STATUS_NOT_SUPPORTED;                                                \
    double flops = 2.0 * n * n * (m - n / 3.0) + 4.0 * m * n * nrhs;                              \
    return factor(*own, "cublas" #L "gelsBatched", kLetter##L, m, n, batch, flops, device_info,   \
                  info);                                                                          \
  }
MAYA_LU(S)
MAYA_LU(D)
MAYA_LU(C)
MAYA_LU(Z)

// Packed triangle to full matrix and back.
#define MAYA_PACK(L)                                                                               \
  cublasStatus_t cublas##L##tpttr(cublasHandle_t handle, cublasFillMode_t, int n, const void*,     \
                                  void* a, int lda) {                                              \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    if (n < 0 || lda < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE;                         \
    if (n == 0) return CUBLAS_STATUS_SUCCESS;                                                      \
    return launch(*own, "cublas" #L "tpttr",                                                       \
                  pointwise(kLetter##L, std::int64_t{n} * (n + 1) / 2, 1, 1, 0, true), kLetter##L, \
                  {a, n, n, lda});                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##L##trttp(cublasHandle_t handle, cublasFillMode_t, int n, const void*,     \
                                  int lda, void* ap) {                                             \
    MAYA_CUBLAS_ENTER(handle);                                                                     \
    if (n < 0 || lda < std::max(1, n)) return CUBLAS_STATUS_INVALID_VALUE;                         \
    std::int64_t elements = std::int64_t{n} * (n + 1) / 2;                                         \
    if (n == 0) return CUBLAS_STATUS_SUCCESS;                                                      \
    return launch(*own, "cublas" #L "trttp", pointwise(kLetter##L, elements, 1, 1, 0, true),       \
                  kLetter##L, {ap, elements});                                                     \
  }
MAYA_PACK(S)
MAYA_PACK(D)
MAYA_PACK(C)
MAYA_PACK(Z)

}  // extern "C"
