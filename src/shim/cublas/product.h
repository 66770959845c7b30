// One matrix product as any of the gemm entry points describes it, and what becomes of it.
#pragma once

#include <cstdint>

#include "shim/common/element.h"
#include "shim/cublas/handle.h"

namespace maya::shim::cublas {

struct Product {
  int transpose_a{}, transpose_b{};
  std::int64_t m{}, n{}, k{};
  const void* alpha{};
  int type_a{};
  std::int64_t lda{};
  int type_b{};
  std::int64_t ldb{};
  const void* beta{};
  void* c{};  // nullptr: behind an array of pointers
  int type_c{};
  std::int64_t ldc{};
  int compute{};
  std::int64_t batch{1}, stride_c{};
};

// Documented argument checks, then the product on the handle's stream.
cublasStatus_t multiply(Handle& handle, const char* name, const Product& product);

// The rate class of a product, by its inputs, compute type and the handle's math mode.
DType rate_of(const Handle& handle, DType input, int compute);

// Whether a scalar (beta) is non-zero; an unknown device scalar counts as zero, as it reads.
bool non_zero(const Handle& handle, const void* scalar, DType type);

// The type of alpha and beta.
DType scalar_type(int compute, int type_c);

}  // namespace maya::shim::cublas
