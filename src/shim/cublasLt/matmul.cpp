// cublasLtMatmul and cublasLtMatrixTransform.
#include <algorithm>
#include <cstring>

#include "session/session.h"
#include "shim/common/element.h"
#include "shim/cublasLt/algorithm.h"
#include "shim/cublasLt/handle.h"
#include "shim/cublasLt/problem.h"

using namespace maya::abi;
using namespace maya::shim::cublaslt;
using maya::Epilogue;
using maya::Gemm;
using maya::Pointwise;
namespace session = maya::session;
namespace shim = maya::shim;

namespace {

cublasStatus_t status_of(int cuda_error) {
  return cuda_error == 0   ? CUBLAS_STATUS_SUCCESS
         : cuda_error == 1 ? CUBLAS_STATUS_INVALID_VALUE
                           : CUBLAS_STATUS_EXECUTION_FAILED;
}

// beta of the host as a double or float is what decides whether C is read; a device scalar as far
// as it is known.
bool reads_c(const MatmulDesc& op, const void* beta) {
  if (!beta || op.pointer_mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO) return false;
  unsigned char value[16] = {};
  std::size_t size = static_cast<std::size_t>(shim::bits_of(shim::dtype_of(op.scale)) / 8);
  if (size == 0 || size > sizeof value) return false;
  bool device = op.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE ||
                op.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
  if (device)
    session::read_device(value, beta, size);
  else
    std::memcpy(value, beta, size);
  for (std::size_t i = 0; i < size; ++i)
    if (value[i]) return true;
  return false;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                              const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, CUstream_st* stream) {
  session::Call call;
  if (!alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
  Problem problem;
  cublasStatus_t status = describe(operation, layout_a, layout_b, layout_c, layout_d, &problem);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  Gemm& gemm = problem.gemm;
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0) return CUBLAS_STATUS_SUCCESS;
  if (!a || !b || !d) return CUBLAS_STATUS_INVALID_VALUE;
  if (algo) {
    Algorithm own;
    std::memcpy(static_cast<void*>(&own), algo, sizeof own);
    if (own.magic != Algorithm::kMagic) return CUBLAS_STATUS_INVALID_VALUE;
    if (own.workspace > workspace_bytes || (own.workspace && !workspace))
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto* op = as<MatmulDesc>(operation);
  gemm.accumulate = c && reads_c(*op, beta);
  // The gradient of the bias, the auxiliary output and amax are written too.
  const void* bias_out = gemm.epilogue == Epilogue::bias_grad || op->epilogue & 16
                             ? reinterpret_cast<const void*>(op->bias)
                             : nullptr;
  const void* amax = reinterpret_cast<const void*>(op->amax_d);
  auto bytes = static_cast<std::uint64_t>(shim::bytes_of(gemm.d, problem.elements_d));
  if (!bytes) return status_of(session::submit(stream, gemm, "cublasLtMatmul"));
  if (!bias_out && !amax)
    return status_of(session::submit(stream, gemm, "cublasLtMatmul", {session::writes(d, bytes)}));
  std::uint64_t bias_bytes =
      static_cast<std::uint64_t>(shim::bytes_of(gemm.d, std::max(gemm.m, gemm.n)));
  return status_of(
      session::submit(stream, gemm, "cublasLtMatmul",
                      {session::writes(d, bytes),
                       session::writes(bias_out ? bias_out : d, bias_out ? bias_bytes : bytes),
                       session::writes(amax ? amax : d, amax ? sizeof(float) : bytes)}));
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle,
                                       cublasLtMatrixTransformDesc_t operation, const void*,
                                       const void* a, cublasLtMatrixLayout_t layout_a, const void*,
                                       const void* b, cublasLtMatrixLayout_t, void* c,
                                       cublasLtMatrixLayout_t layout_c, CUstream_st* stream) {
  session::Call call;
  if (!alive(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto* from = as<Layout>(layout_a);
  const auto* to = as<Layout>(layout_c);
  if (!as<Transform>(operation) || !from || !to || !a || !c) return CUBLAS_STATUS_INVALID_VALUE;
  Pointwise work;
  work.elements = static_cast<std::int64_t>(to->rows * to->cols) * to->batch_count;
  work.inputs = b ? 2 : 1;
  work.dtype = shim::dtype_of(to->type);
  work.bytes_read = shim::bytes_of(shim::dtype_of(from->type), work.elements) * work.inputs;
  work.bytes_written = shim::bytes_of(work.dtype, work.elements);
  work.strided = true, work.vector = 1;
  if (work.elements == 0) return CUBLAS_STATUS_SUCCESS;
  return status_of(
      session::submit(stream, work, "cublasLtMatrixTransform",
                      {session::writes(c, static_cast<std::uint64_t>(work.bytes_written))}));
}

}  // extern "C"
