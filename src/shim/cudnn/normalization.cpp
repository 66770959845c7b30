// Batch normalization of the legacy interface.
#include <algorithm>

#include "maya/op.h"
#include "shim/cudnn/tensor.h"

using namespace maya::abi;
using namespace maya::shim::cudnn;
using namespace maya;

namespace {

cudnnStatus_t bad(const char* why) { return fail(CUDNN_STATUS_BAD_PARAM, why); }

Normalization describe(const Tensor& x, int mode, Direction direction, int ops) {
  Normalization work;
  work.kind = NormKind::batch;
  std::int64_t channels = x.rank > 1 ? x.dims[1] : 1;
  work.rows = mode == CUDNN_BATCHNORM_PER_ACTIVATION
                  ? x.elements() / std::max<std::int64_t>(1, x.dims[0])
                  : channels;
  work.cols = work.rows ? x.elements() / work.rows : 0;
  work.dtype = dtype_of(x.type);
  work.direction = direction;
  work.channels_last = x.channels_last();
  work.fused_add = ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
  return work;
}

std::uint64_t channel_bytes(const Tensor* parameters) {
  return parameters ? parameters->bytes() : 0;
}

// One bit an element remembers where the activation cut; plain batch norm keeps nothing but its
// statistics.
std::size_t reserve_bytes(const Tensor& x, int ops) {
  return ops == CUDNN_BATCHNORM_OPS_BN ? 0 : static_cast<std::size_t>((x.elements() + 7) / 8);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            cudnnTensorDescriptor_t x, cudnnBatchNormMode_t mode) {
  auto* to = as<Tensor>(derived);
  auto* from = as<Tensor>(x);
  if (!to || !from || from->rank < 4)
    return bad("cudnnDeriveBNTensorDescriptor: tensors of rank 4 or 5 are expected");
  *to = *from;
  to->type = from->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  to->dims[0] = 1;
  if (mode != CUDNN_BATCHNORM_PER_ACTIVATION)
    for (std::size_t i = 2; i < static_cast<std::size_t>(to->rank); ++i) to->dims[i] = 1;
  std::int64_t step = 1;
  for (std::size_t i = static_cast<std::size_t>(to->rank); i-- > 0;)
    to->strides[i] = step, step *= to->dims[i];
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t x,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnActivationDescriptor_t, std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(x) || !size) return bad("x or size is null");
  // Partial sums of the channels-last kernels: two floats a channel and thread block.
  auto* tensor = as<Tensor>(x);
  *size = tensor->channels_last()
              ? static_cast<std::size_t>(tensor->dims[1]) * 8 * session::gpu().sms
              : 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t x,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnActivationDescriptor_t,
    std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(x) || !size) return bad("x or size is null");
  auto* tensor = as<Tensor>(x);
  *size = tensor->channels_last()
              ? static_cast<std::size_t>(tensor->dims[1]) * 8 * session::gpu().sms
              : 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t, cudnnBatchNormOps_t ops,
    cudnnActivationDescriptor_t, cudnnTensorDescriptor_t x, std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(x) || !size) return bad("x or size is null");
  *size = reserve_bytes(*as<Tensor>(x), ops);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void*,
    const void*, cudnnTensorDescriptor_t x, const void*, cudnnTensorDescriptor_t, const void*,
    cudnnTensorDescriptor_t y, void* y_data, cudnnTensorDescriptor_t parameters, const void*,
    const void*, double, void* running_mean, void* running_variance, double epsilon,
    void* saved_mean, void* saved_variance, cudnnActivationDescriptor_t, void*, std::size_t, void*,
    std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(x) || !as<Tensor>(y) || epsilon < 0)
    return bad("cudnnBatchNormalizationForwardTrainingEx: a descriptor is null");
  std::uint64_t channels = channel_bytes(as<Tensor>(parameters));
  auto touch = [&](void* at) {
    return session::writes(at ? at : y_data, at ? channels : as<Tensor>(y)->bytes());
  };
  return status_of(
      session::submit(own->stream, describe(*as<Tensor>(x), mode, Direction::forward, ops),
                      "cudnnBatchNormalizationForwardTrainingEx",
                      {session::writes(y_data, as<Tensor>(y)->bytes()), touch(running_mean),
                       touch(running_variance), touch(saved_mean), touch(saved_variance)}));
}
cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    cudnnTensorDescriptor_t x, const void* x_data, cudnnTensorDescriptor_t y, void* y_data,
    cudnnTensorDescriptor_t parameters, const void* scale, const void* bias, double factor,
    void* mean, void* variance, double epsilon, void* saved_mean, void* saved_variance) {
  return cudnnBatchNormalizationForwardTrainingEx(
      handle, mode, CUDNN_BATCHNORM_OPS_BN, alpha, beta, x, x_data, nullptr, nullptr, y, y_data,
      parameters, scale, bias, factor, mean, variance, epsilon, saved_mean, saved_variance, nullptr,
      nullptr, 0, nullptr, 0);
}
cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t, const void*, const void*, cudnnTensorDescriptor_t x,
    const void*, cudnnTensorDescriptor_t y, void* y_data, cudnnTensorDescriptor_t, const void*,
    const void*, const void*, const void*, double) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(x) || !as<Tensor>(y))
    return bad("cudnnBatchNormalizationForwardInference: a descriptor is null");
  // With fixed statistics it is a scale and a shift of every element.
  Pointwise work;
  work.elements = as<Tensor>(x)->elements();
  work.dtype = dtype_of(as<Tensor>(x)->type);
  work.bytes_read = work.bytes_written = static_cast<std::int64_t>(as<Tensor>(x)->bytes());
  work.flops_per_element = 2;
  return status_of(session::submit(own->stream, work, "cudnnBatchNormalizationForwardInference",
                                   {session::writes(y_data, as<Tensor>(y)->bytes())}));
}
cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void*,
    const void*, const void*, const void*, cudnnTensorDescriptor_t x, const void*,
    cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
    cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t dx, void* dx_data,
    cudnnTensorDescriptor_t parameters, const void*, const void*, void* dscale, void* dbias, double,
    const void*, const void*, cudnnActivationDescriptor_t, void*, std::size_t, void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(x) || !as<Tensor>(dx))
    return bad("cudnnBatchNormalizationBackwardEx: a descriptor is null");
  std::uint64_t channels = channel_bytes(as<Tensor>(parameters));
  return status_of(
      session::submit(own->stream, describe(*as<Tensor>(x), mode, Direction::backward, ops),
                      "cudnnBatchNormalizationBackwardEx",
                      {session::writes(dx_data, as<Tensor>(dx)->bytes()),
                       session::writes(dscale, channels), session::writes(dbias, channels)}));
}
cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* a, const void* b, const void* c,
    const void* d, cudnnTensorDescriptor_t x, const void* x_data, cudnnTensorDescriptor_t dy,
    const void* dy_data, cudnnTensorDescriptor_t dx, void* dx_data,
    cudnnTensorDescriptor_t parameters, const void* scale, void* dscale, void* dbias,
    double epsilon, const void* mean, const void* variance) {
  return cudnnBatchNormalizationBackwardEx(
      handle, mode, CUDNN_BATCHNORM_OPS_BN, a, b, c, d, x, x_data, nullptr, nullptr, dy, dy_data,
      nullptr, nullptr, dx, dx_data, parameters, scale, nullptr, dscale, dbias, epsilon, mean,
      variance, nullptr, nullptr, 0, nullptr, 0);
}

}  // extern "C"
