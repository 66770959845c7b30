#include "shim/cublasLt/problem.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "shim/common/element.h"

namespace maya::shim::cublaslt {
namespace {

using namespace abi;

bool multiple_of_16_bytes(DType type, std::int64_t elements) {
  return elements * bits_of(type) % 128 == 0;
}

bool block_scaled(int mode) {
  return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3 ||
         mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
}

// FP8 and FP4: "Narrow Precision Data Types Usage" of the cuBLAS manual.
cublasStatus_t check_narrow(const MatmulDesc& op, const Gemm& gemm) {
  int cc = capability();
  bool f4 = gemm.a == DType::f4 || gemm.b == DType::f4;
  if (cc < 89 || (f4 && cc < 100)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (op.compute != CUBLAS_COMPUTE_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (f4 && (gemm.a != gemm.b || !block_scaled(op.a_scale_mode)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (gemm.a == DType::f8e5m2 && gemm.b == DType::f8e5m2) return CUBLAS_STATUS_NOT_SUPPORTED;
  // Before Blackwell (and always for FP4) both operands have k contiguous.
  if ((cc < 100 || f4) && !(gemm.transpose_a && !gemm.transpose_b))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  // The contiguous dimension of every operand starts rows on 16 bytes.
  if (!multiple_of_16_bytes(gemm.a, gemm.lda) || !multiple_of_16_bytes(gemm.b, gemm.ldb) ||
      !multiple_of_16_bytes(gemm.d, gemm.ldd) || !multiple_of_16_bytes(gemm.a, gemm.k))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int mode : {int{op.a_scale_mode}, int{op.b_scale_mode}}) {
    bool supported = true;
    switch (mode) {
      case CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F:
        break;
      case CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3:
      case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0:
        supported = cc >= 100;
        break;
      case CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F:
        supported = cc >= 90;
        break;
      case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
      case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
        supported = cc == 90;
        break;
      default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!supported) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  bool output = is_f8(gemm.d) || gemm.d == DType::f4 || gemm.d == DType::bf16 ||
                gemm.d == DType::f16 || gemm.d == DType::f32;
  return output ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// The table of supported compute, scale, A/B and D types under cublasLtMatmul.
cublasStatus_t check_types(const MatmulDesc& op, const Gemm& gemm) {
  DType a = gemm.a, b = gemm.b, d = gemm.d;
  if (a == DType::unknown || b == DType::unknown || d == DType::unknown)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (is_f8(a) || is_f8(b) || a == DType::f4 || b == DType::f4) return check_narrow(op, gemm);
  if (a != b) return CUBLAS_STATUS_NOT_SUPPORTED;
  switch (op.compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return a == DType::f16 && d == DType::f16 ? CUBLAS_STATUS_SUCCESS
                                                : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC: {
      if (a != DType::i8 || (d != DType::i32 && d != DType::i8)) return CUBLAS_STATUS_NOT_SUPPORTED;
      bool aligned = gemm.lda % 4 == 0 && gemm.ldb % 4 == 0 && gemm.m % 4 == 0 && gemm.k % 4 == 0;
      return aligned && capability() >= 61 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC: {
      bool half = a == DType::f16 || a == DType::bf16;
      bool fits = half             ? d == a || d == DType::f32
                  : a == DType::i8 ? d == DType::f32
                                   : (a == DType::f32 || a == DType::c64) && d == a;
      return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
      return (a == DType::f32 || a == DType::c64) && d == a ? CUBLAS_STATUS_SUCCESS
                                                            : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
      return (a == DType::f64 || a == DType::c128) && d == a ? CUBLAS_STATUS_SUCCESS
                                                             : CUBLAS_STATUS_NOT_SUPPORTED;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

DType rate_of(int compute, DType input) {
  switch (compute) {
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return DType::f32;
    case CUBLAS_COMPUTE_32F_FAST_16F:
      return rate_class(DType::f16, false);
    case CUBLAS_COMPUTE_32F_FAST_16BF:
      return rate_class(DType::bf16, false);
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return rate_class(input, true);
    default:
      return rate_class(input, false);
  }
}

Epilogue epilogue_of(int bits) {
  switch (bits) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return Epilogue::none;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_AUX:
      return Epilogue::relu;
    case CUBLASLT_EPILOGUE_BIAS:
      return Epilogue::bias;
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
      return Epilogue::bias_relu;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
      return Epilogue::gelu;
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      return Epilogue::bias_gelu;
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
      return Epilogue::relu_grad;
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      return Epilogue::gelu_grad;
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return Epilogue::bias_grad;
    default:
      return Epilogue::other;
  }
}

// Sum and maximum of a device array of group sizes; entries nobody knows count as 0.
struct Groups {
  std::int64_t sum{}, largest{};
};
Groups group_sizes(std::uint64_t array, int groups) {
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(groups));
  session::read_device(sizes.data(), reinterpret_cast<const void*>(array),
                       sizes.size() * sizeof(std::int32_t));
  Groups result;
  for (std::int64_t size : sizes)
    result.sum += size, result.largest = std::max(result.largest, size);
  return result;
}

cublasStatus_t describe_grouped(const MatmulDesc& op, const Layout& a, const Layout& b,
                                const Layout& d, Problem* problem) {
  Gemm& gemm = problem->gemm;
  int groups = d.batch_count;
  if (a.batch_count != groups || b.batch_count != groups) return CUBLAS_STATUS_INVALID_VALUE;
  Groups m = group_sizes(d.rows, groups), n = group_sizes(d.cols, groups);
  Groups k = group_sizes(op.transpose_a ? a.rows : a.cols, groups);
  gemm.a = dtype_of(a.type), gemm.b = dtype_of(b.type), gemm.d = dtype_of(d.type);
  gemm.transpose_a = op.transpose_a != CUBLAS_OP_N,
  gemm.transpose_b = op.transpose_b != CUBLAS_OP_N;
  gemm.groups = groups;
  gemm.compute = rate_of(op.compute, gemm.a);
  gemm.k = k.largest;
  if (m.sum == m.largest * groups) {  // tokens are columns
    gemm.m = n.sum, gemm.n = m.largest;
    std::swap(gemm.a, gemm.b);
    bool left = gemm.transpose_a;
    gemm.transpose_a = !gemm.transpose_b, gemm.transpose_b = !left;
  } else {
    gemm.m = m.sum, gemm.n = n.largest;
  }
  if (k.sum && k.sum != k.largest * groups) gemm.k = std::max<std::int64_t>(1, k.sum / groups);
  problem->elements_d = 0;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t describe(const void* matmul, const void* layout_a, const void* layout_b,
                        const void* layout_c, const void* layout_d, Problem* problem) {
  const auto* op = as<MatmulDesc>(matmul);
  const auto* a = as<Layout>(layout_a);
  const auto* b = as<Layout>(layout_b);
  const auto* c = as<Layout>(layout_c);
  const auto* d = as<Layout>(layout_d);
  if (!op || !a || !b || !c || !d) return CUBLAS_STATUS_INVALID_VALUE;
  if (d->batch_mode == kBatchGrouped) return describe_grouped(*op, *a, *b, *d, problem);

  auto signed_of = [](std::uint64_t size) { return static_cast<std::int64_t>(size); };
  std::int64_t m = signed_of(d->rows), n = signed_of(d->cols);
  std::int64_t k = signed_of(op->transpose_a ? a->rows : a->cols);
  if (signed_of(op->transpose_a ? a->cols : a->rows) != m ||
      signed_of(op->transpose_b ? b->rows : b->cols) != n ||
      signed_of(op->transpose_b ? b->cols : b->rows) != k || signed_of(c->rows) != m ||
      signed_of(c->cols) != n)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (a->batch_count != d->batch_count || b->batch_count != d->batch_count || d->batch_count < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const Layout* layout : {a, b, c, d}) {
    std::uint64_t contiguous = layout->order == CUBLASLT_ORDER_ROW ? layout->cols : layout->rows;
    if (layout->order <= CUBLASLT_ORDER_ROW && layout->ld < signed_of(contiguous))
      return CUBLAS_STATUS_INVALID_VALUE;
  }

  Gemm& gemm = problem->gemm;
  gemm.m = m, gemm.n = n, gemm.k = k, gemm.batch = d->batch_count;
  gemm.a = dtype_of(a->type), gemm.b = dtype_of(b->type), gemm.d = dtype_of(d->type);
  gemm.lda = a->ld, gemm.ldb = b->ld, gemm.ldd = d->ld;
  // A row-major operand is its transpose in column-major.
  gemm.transpose_a = (op->transpose_a != CUBLAS_OP_N) != (a->order == CUBLASLT_ORDER_ROW);
  gemm.transpose_b = (op->transpose_b != CUBLAS_OP_N) != (b->order == CUBLASLT_ORDER_ROW);
  gemm.compute = rate_of(op->compute, gemm.a);
  gemm.epilogue = epilogue_of(op->epilogue);
  if (d->order == CUBLASLT_ORDER_ROW) {  // Dᵀ = Bᵀ·Aᵀ
    std::swap(gemm.m, gemm.n);
    std::swap(gemm.a, gemm.b);
    std::swap(gemm.lda, gemm.ldb);
    bool left = gemm.transpose_a;
    gemm.transpose_a = !gemm.transpose_b, gemm.transpose_b = !left;
  }
  if (d->batch_mode == kBatchPointers)
    problem->elements_d = 0;
  else
    problem->elements_d = std::max<std::int64_t>(
        0, (gemm.batch - 1) * std::abs(d->batch_stride) + (gemm.n - 1) * gemm.ldd + gemm.m);
  if (gemm.epilogue == Epilogue::other) return CUBLAS_STATUS_NOT_SUPPORTED;
  return check_types(*op, gemm);
}

}  // namespace maya::shim::cublaslt
