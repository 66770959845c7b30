#include "shim/cublas/product.h"
#include "session/host_memory.h"

#include <algorithm>
#include <cstring>

namespace maya::shim::cublas {
namespace {

constexpr int kPedanticMath = 2, kTf32Math = 3, kTensorOpMath = 1;

bool operation_known(int operation) { return operation >= 0 && operation <= 2; }

// The table of GemmEx: which A/B and C types a compute type takes.
bool supported(int compute, int a, int b, int c) {
  auto is = [](int type, std::initializer_list<int> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  if (a != b) return false;
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return a == CUDA_R_16F && c == CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return a == CUDA_R_8I && c == CUDA_R_32I;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      if (a == CUDA_R_16BF || a == CUDA_R_16F) return c == a || c == CUDA_R_32F;
      if (a == CUDA_R_8I) return c == CUDA_R_32F;
      if (a == CUDA_C_8I) return c == CUDA_C_32F;
      return is(a, {CUDA_R_32F, CUDA_C_32F}) && c == a;
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case 78:
      return is(a, {CUDA_R_32F, CUDA_C_32F}) && c == a;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case 79:
      return is(a, {CUDA_R_64F, CUDA_C_64F}) && c == a;
    default:
      return false;
  }
}

}  // namespace

DType rate_of(const Handle& handle, DType input, int compute) {
  int mode = handle.math_mode & 15;
  switch (compute) {
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return DType::f32;
    case CUBLAS_COMPUTE_32F_FAST_16F:
      return input == DType::f32 ? rate_class(DType::f16, false) : input;
    case CUBLAS_COMPUTE_32F_FAST_16BF:
      return input == DType::f32 ? rate_class(DType::bf16, false) : input;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return rate_class(input, true);
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return DType::f64;
    default:
      break;
  }
  if (mode == kPedanticMath && (input == DType::f32 || input == DType::c64)) return DType::f32;
  return rate_class(input, mode == kTf32Math || mode == kTensorOpMath);
}

DType scalar_type(int compute, int type_c) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return DType::f16;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return DType::i32;
    default:
      break;
  }
  DType c = dtype_of(type_c);
  if (is_complex(c)) return c;
  return c == DType::f64 ? DType::f64 : DType::f32;
}

bool non_zero(const Handle& handle, const void* scalar, DType type) {
  unsigned char value[16] = {};
  std::size_t size = static_cast<std::size_t>(bits_of(type) / 8);
  if (size > sizeof value) return false;
  if (handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
    session::read_device(value, scalar, size);
  else if (session::mapped_scalar(scalar, size))
    std::memcpy(value, scalar, size);
  // Minus zero has its sign bit in the last byte of each part.
  std::size_t part = is_complex(type) ? size / 2 : size;
  for (std::size_t i = 0; i < size; ++i) {
    bool sign_byte = type != DType::i32 && (i + 1) % part == 0;
    if (value[i] & (sign_byte ? 0x7f : 0xff)) return true;
  }
  return false;
}

cublasStatus_t multiply(Handle& handle, const char* name, const Product& p) {
  if (!operation_known(p.transpose_a) || !operation_known(p.transpose_b))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
  std::int64_t rows_a = p.transpose_a ? p.k : p.m, rows_b = p.transpose_b ? p.n : p.k;
  if (p.lda < std::max<std::int64_t>(1, rows_a) || p.ldb < std::max<std::int64_t>(1, rows_b) ||
      p.ldc < std::max<std::int64_t>(1, p.m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!p.alpha || !p.beta) return CUBLAS_STATUS_INVALID_VALUE;
  if (!supported(p.compute, p.type_a, p.type_b, p.type_c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return CUBLAS_STATUS_SUCCESS;

  Gemm gemm;
  gemm.m = p.m, gemm.n = p.n, gemm.k = p.k, gemm.batch = p.batch;
  gemm.a = dtype_of(p.type_a), gemm.b = dtype_of(p.type_b), gemm.d = dtype_of(p.type_c);
  gemm.compute = rate_of(handle, gemm.a, p.compute);
  gemm.transpose_a = p.transpose_a != 0, gemm.transpose_b = p.transpose_b != 0;
  gemm.lda = p.lda, gemm.ldb = p.ldb, gemm.ldd = p.ldc;
  gemm.accumulate = non_zero(handle, p.beta, scalar_type(p.compute, p.type_c));
  if (!p.c) return status_of(session::submit(handle.stream, gemm, name));
  std::int64_t elements = (p.batch - 1) * std::abs(p.stride_c) + (p.n - 1) * p.ldc + p.m;
  return status_of(session::submit(
      handle.stream, gemm, name,
      {session::writes(p.c, static_cast<std::uint64_t>(bytes_of(gemm.d, elements)))}));
}

}  // namespace maya::shim::cublas
