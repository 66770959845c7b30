// A dense routine of cuSOLVER as a Solver op. Every matrix is taken as regular: info is 0.
//
// FLOP counts are those of LAPACK Working Note 41, multiply and add counted apart; iterative
// routines (eigenvalues, singular values) have the usual constants for all vectors.
#pragma once

#include <algorithm>
#include <vector>

#include "abi/cusolver.h"
#include "maya/op.h"
#include "session/handles.h"
#include "shim/common/element.h"

namespace maya::shim::cusolver {

using namespace maya::abi;

struct Handle {
  static constexpr maya::session::HandleKind kind = maya::session::handle_kind("cusolver");
  void* stream{};
};
// nullptr for what is no living handle.
inline Handle* as(const void* handle) { return session::find_handle<Handle>(handle); }

inline double lu(double m, double n) {
  double k = std::min(m, n);
  return 2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3;
}
inline double cholesky(double n) { return n * n * n / 3; }
inline double qr(double m, double n) {
  double k = std::min(m, n), l = std::max(m, n);
  return 2 * k * k * (l - k / 3);
}
inline double apply_q(double m, double n, double k) { return 4 * m * n * k - 2 * n * k * k; }
inline double eigenvalues(double n, bool vectors) { return (vectors ? 9.0 : 4.0 / 3) * n * n * n; }
inline double singular_values(double m, double n, bool vectors) {
  double k = std::min(m, n), l = std::max(m, n);
  return vectors ? 4 * l * l * k + 8 * l * k * k + 9 * k * k * k
                 : 4 * l * k * k - 4 * k * k * k / 3;
}

struct Output {
  const void* address{};
  std::int64_t elements{};
};

// The op on the handle's stream; writes `outputs` and zero to the `batch` infos.
inline cusolverStatus_t factor(Handle* handle, const char* name, DType type, std::int64_t m,
                               std::int64_t n, std::int64_t batch, double flops, Output output,
                               int* info) {
  session::Call call;
  if (!handle) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || batch < 0) return CUSOLVER_STATUS_INVALID_VALUE;
  if (info && batch > 0) {
    // Of very many nothing need be stored: what nobody wrote reads as zero.
    constexpr std::int64_t most = 1 << 20;
    std::vector<int> zeros(static_cast<std::size_t>(std::min<std::int64_t>(batch, most)), 0);
    session::write_device(info, zeros.data(), zeros.size() * sizeof(int));
  }
  if (m == 0 || n == 0 || batch == 0) return CUSOLVER_STATUS_SUCCESS;
  Solver work;
  work.m = m, work.n = n, work.batch = batch, work.dtype = type;
  double unit = 1.0 * m * n * std::min(m, n);
  work.flop_factor = flops * (is_complex(type) ? 4 : 1) / unit;
  int error =
      output.address && output.elements > 0
          ? session::submit(handle->stream, work, name,
                            {session::writes(output.address, static_cast<std::uint64_t>(
                                                                 bytes_of(type, output.elements)))})
          : session::submit(handle->stream, work, name);
  return error ? CUSOLVER_STATUS_EXECUTION_FAILED : CUSOLVER_STATUS_SUCCESS;
}

// Scratch in elements, as the typed *_bufferSize calls report it.
inline cusolverStatus_t scratch(const void* handle, std::int64_t elements, int* size) {
  if (!as(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!size || elements < 0) return CUSOLVER_STATUS_INVALID_VALUE;
  *size = static_cast<int>(std::min<std::int64_t>(elements, 0x7fffffff));
  return CUSOLVER_STATUS_SUCCESS;
}
// Scratch in bytes on device and host, as the generic calls report it.
inline cusolverStatus_t scratch(const void* handle, std::int64_t elements, int type,
                                std::size_t* device, std::size_t* host) {
  if (!as(handle)) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (!device || elements < 0) return CUSOLVER_STATUS_INVALID_VALUE;
  *device = static_cast<std::size_t>(bytes_of(dtype_of(type), elements));
  if (host) *host = 0;
  return CUSOLVER_STATUS_SUCCESS;
}

inline constexpr DType kLetterS = DType::f32, kLetterD = DType::f64, kLetterC = DType::c64,
                       kLetterZ = DType::c128;
inline constexpr std::int64_t kBlock = 64;  // columns a blocked routine keeps beside the matrix

}  // namespace maya::shim::cusolver
