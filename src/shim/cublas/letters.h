// The four element letters of BLAS and the small ops of levels 1 to 3.
#pragma once

#include <algorithm>

#include "shim/cublas/product.h"

namespace maya::shim::cublas {

inline constexpr DType kLetterS = DType::f32, kLetterD = DType::f64, kLetterC = DType::c64,
                       kLetterZ = DType::c128;

// Instantiates M(letter, suffix, integer) for a routine whose plain name ends in _v2, and its
// 64-bit twin.
#define MAYA_V2(M, L) M(L, _v2, int) M(L, _v2_64, std::int64_t)
#define MAYA_PLAIN(M, L) M(L, , int) M(L, _64, std::int64_t)
#define MAYA_LETTERS_V2(M) MAYA_V2(M, S) MAYA_V2(M, D) MAYA_V2(M, C) MAYA_V2(M, Z)
#define MAYA_LETTERS(M) MAYA_PLAIN(M, S) MAYA_PLAIN(M, D) MAYA_PLAIN(M, C) MAYA_PLAIN(M, Z)

// The matrix or vector that is written: rows × cols with a leading dimension.
struct Target {
  void* address{};
  std::int64_t rows{}, cols{1}, ld{1};
};

inline cublasStatus_t launch(Handle& handle, const char* name, const Work& work, DType type,
                             const Target& to) {
  std::int64_t elements = to.cols > 0 ? (to.cols - 1) * std::abs(to.ld) + to.rows : 0;
  if (!to.address || elements <= 0) return status_of(session::submit(handle.stream, work, name));
  return status_of(session::submit(
      handle.stream, work, name,
      {session::writes(to.address, static_cast<std::uint64_t>(bytes_of(type, elements)))}));
}

inline Pointwise pointwise(DType type, std::int64_t elements, int inputs, int outputs, int flops,
                           bool strided) {
  Pointwise work;
  work.elements = elements;
  work.bytes_read = bytes_of(type, elements) * inputs;
  work.bytes_written = bytes_of(type, elements) * outputs;
  work.inputs = inputs, work.outputs = outputs, work.dtype = type;
  work.flops_per_element = flops;
  work.strided = strided;
  work.vector = strided ? 1 : 4;
  return work;
}

// A matrix product that another routine amounts to.
inline Gemm as_gemm(const Handle& handle, DType type, std::int64_t m, std::int64_t n,
                    std::int64_t k, std::int64_t lda, std::int64_t ldb, std::int64_t ldd,
                    std::int64_t batch = 1) {
  Gemm gemm;
  gemm.m = m, gemm.n = n, gemm.k = k, gemm.batch = batch;
  gemm.a = gemm.b = gemm.d = type;
  gemm.compute = rate_of(handle, type, CUBLAS_COMPUTE_32F);
  gemm.lda = lda, gemm.ldb = ldb, gemm.ldd = ldd;
  return gemm;
}

// FLOPs given outright; Solver counts flop_factor · m · n · min(m, n) · batch.
inline Solver solver(DType type, std::int64_t m, std::int64_t n, std::int64_t batch,
                     double flops_each) {
  Solver work;
  work.m = m, work.n = n, work.batch = batch, work.dtype = type;
  double unit = 1.0 * m * n * std::min(m, n);
  work.flop_factor = unit > 0 ? flops_each / unit : 0;
  return work;
}

}  // namespace maya::shim::cublas
