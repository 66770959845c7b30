// The rest of the legacy interface: dropout, softmax, pooling, activation, tensor arithmetic, CTC
// loss, spatial transformer.
#include <algorithm>

#include "maya/op.h"
#include "shim/cudnn/tensor.h"

using namespace maya::abi;
using namespace maya::shim::cudnn;
using namespace maya;

namespace {

cudnnStatus_t bad(const char* why) { return fail(CUDNN_STATUS_BAD_PARAM, why); }

cudnnStatus_t map(Handle& own, const char* name, const Tensor* in, const Tensor* out, void* data,
                  int inputs, int flops) {
  if (!in || !out) return bad("a tensor descriptor is null");
  Pointwise work;
  work.elements = out->elements();
  work.dtype = dtype_of(out->type);
  work.inputs = inputs;
  work.bytes_read = static_cast<std::int64_t>(in->bytes()) * inputs;
  work.bytes_written = static_cast<std::int64_t>(out->bytes());
  work.flops_per_element = flops;
  return status_of(session::submit(own.stream, work, name, {session::writes(data, out->bytes())}));
}

cudnnStatus_t softmax(Handle& own, const char* name, int algorithm, int mode, const Tensor* x,
                      void* data, Direction direction) {
  if (!x) return bad("a tensor descriptor is null");
  Softmax work;
  std::int64_t channels = x->rank > 1 ? x->dims[1] : 1;
  work.cols = mode == CUDNN_SOFTMAX_MODE_CHANNEL
                  ? channels
                  : x->elements() / std::max<std::int64_t>(1, x->dims[0]);
  work.rows = work.cols ? x->elements() / work.cols : 0;
  work.in = work.out = dtype_of(x->type);
  work.direction = direction;
  work.log = algorithm == CUDNN_SOFTMAX_LOG;
  return status_of(session::submit(own.stream, work, name, {session::writes(data, x->bytes())}));
}

cudnnStatus_t pool(Handle& own, const char* name, const Pooling* pooling, const Tensor* in,
                   const Tensor* out, void* data, std::uint64_t bytes, Direction direction) {
  if (!pooling || !in || !out) return bad("a descriptor is null");
  Pool work;
  work.inputs = in->elements(), work.outputs = out->elements();
  for (std::size_t i = 0; i < static_cast<std::size_t>(pooling->rank); ++i)
    work.window *= pooling->window[i];
  work.dtype = dtype_of(in->type);
  work.direction = direction;
  work.channels_last = in->channels_last();
  return status_of(session::submit(own.stream, work, name, {session::writes(data, bytes)}));
}

// One generator state of 48 bytes a resident thread.
std::size_t state_bytes() {
  const auto& gpu = session::gpu();
  return static_cast<std::size_t>(gpu.sms) *
         static_cast<std::size_t>(std::max(1, gpu.max_threads_per_sm)) * 48;
}

cudnnStatus_t ctc(Handle& own, const char* name, const Tensor* probabilities,
                  const Tensor* gradients, void* costs, void* gradient_data) {
  if (!probabilities) return bad("the probabilities' descriptor is null");
  // Alpha and beta recursions over time: the probabilities are read twice, the gradients written
  // once.
  Pointwise work;
  work.elements = probabilities->elements();
  work.dtype = dtype_of(probabilities->type);
  work.inputs = 2;
  work.bytes_read = static_cast<std::int64_t>(probabilities->bytes()) * 2;
  work.bytes_written = gradients ? static_cast<std::int64_t>(gradients->bytes()) : 0;
  work.flops_per_element = 8;
  std::uint64_t cost_bytes =
      static_cast<std::uint64_t>(probabilities->rank > 1 ? probabilities->dims[1] : 1) *
      sizeof(float);
  if (!gradients || !gradient_data)
    return status_of(session::submit(own.stream, work, name, {session::writes(costs, cost_bytes)}));
  return status_of(session::submit(
      own.stream, work, name,
      {session::writes(costs, cost_bytes), session::writes(gradient_data, gradients->bytes())}));
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* descriptor) {
  return create<Dropout>(descriptor);
}
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t descriptor) {
  return destroy<Dropout>(descriptor);
}
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!size) return bad("size is null");
  *size = state_bytes();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x, std::size_t* size) {
  if (!as<Tensor>(x) || !size) return bad("tensor descriptor or size is null");
  *size = static_cast<std::size_t>((as<Tensor>(x)->elements() + 7) / 8);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle,
                                        float probability, void* states, std::size_t bytes,
                                        unsigned long long seed) {
  MAYA_CUDNN_ENTER(handle);
  auto* dropout = as<Dropout>(descriptor);
  if (!dropout || probability < 0 || probability > 1)
    return bad("cudnnSetDropoutDescriptor: arguments");
  *dropout = {probability, states, bytes, seed};
  if (!states) return CUDNN_STATUS_SUCCESS;
  if (bytes < state_bytes())
    return fail(CUDNN_STATUS_BAD_PARAM, "the dropout states need more memory");
  Random work;
  work.elements = static_cast<std::int64_t>(bytes / sizeof(float));
  return status_of(session::submit(own->stream, work, "cudnnSetDropoutDescriptor",
                                   {session::writes(states, bytes)}));
}
cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t descriptor,
                                            cudnnHandle_t handle, float probability, void* states,
                                            std::size_t bytes, unsigned long long seed) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Dropout>(descriptor)) return bad("dropout descriptor is null");
  *as<Dropout>(descriptor) = {probability, states, bytes, seed};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle, cudnnDropoutDescriptor_t,
                                  cudnnTensorDescriptor_t x, const void*, cudnnTensorDescriptor_t y,
                                  void* y_data, void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(x) || !as<Tensor>(y)) return bad("a tensor descriptor is null");
  Random work;
  work.elements = as<Tensor>(x)->elements(), work.dtype = dtype_of(as<Tensor>(x)->type),
  work.dropout = true;
  return status_of(session::submit(own->stream, work, "cudnnDropoutForward",
                                   {session::writes(y_data, as<Tensor>(y)->bytes())}));
}
cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle, cudnnDropoutDescriptor_t,
                                   cudnnTensorDescriptor_t dy, const void*,
                                   cudnnTensorDescriptor_t dx, void* data, void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnDropoutBackward", as<Tensor>(dy), as<Tensor>(dx), data, 1, 2);
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void*, cudnnTensorDescriptor_t x,
                                  const void*, const void*, cudnnTensorDescriptor_t, void* y) {
  MAYA_CUDNN_ENTER(handle);
  return softmax(*own, "cudnnSoftmaxForward", algorithm, mode, as<Tensor>(x), y,
                 Direction::forward);
}
cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                   cudnnSoftmaxMode_t mode, const void*, cudnnTensorDescriptor_t y,
                                   const void*, cudnnTensorDescriptor_t, const void*, const void*,
                                   cudnnTensorDescriptor_t, void* dx) {
  MAYA_CUDNN_ENTER(handle);
  return softmax(*own, "cudnnSoftmaxBackward", algorithm, mode, as<Tensor>(y), dx,
                 Direction::backward);
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                  const void*, cudnnTensorDescriptor_t x, const void*, const void*,
                                  cudnnTensorDescriptor_t y, void* data) {
  MAYA_CUDNN_ENTER(handle);
  return pool(*own, "cudnnPoolingForward", as<Pooling>(pooling), as<Tensor>(x), as<Tensor>(y), data,
              as<Tensor>(y) ? as<Tensor>(y)->bytes() : 0, Direction::forward);
}
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t pooling,
                                   const void*, cudnnTensorDescriptor_t y, const void*,
                                   cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t,
                                   const void*, const void*, cudnnTensorDescriptor_t dx,
                                   void* data) {
  MAYA_CUDNN_ENTER(handle);
  return pool(*own, "cudnnPoolingBackward", as<Pooling>(pooling), as<Tensor>(dx), as<Tensor>(y),
              data, as<Tensor>(dx) ? as<Tensor>(dx)->bytes() : 0, Direction::backward);
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t, const void*,
                                     cudnnTensorDescriptor_t x, const void*, const void*,
                                     cudnnTensorDescriptor_t y, void* data) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnActivationForward", as<Tensor>(x), as<Tensor>(y), data, 1, 1);
}
cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t,
                                      const void*, cudnnTensorDescriptor_t y, const void*,
                                      cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t,
                                      const void*, const void*, cudnnTensorDescriptor_t dx,
                                      void* data) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnActivationBackward", as<Tensor>(y), as<Tensor>(dx), data, 2, 2);
}
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t,
                             const void*, const void*, cudnnTensorDescriptor_t c, void* data) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnAddTensor", as<Tensor>(c), as<Tensor>(c), data, 1, 1);
}
cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, cudnnOpTensorDescriptor_t, const void*,
                            cudnnTensorDescriptor_t a, const void*, const void*,
                            cudnnTensorDescriptor_t, const void*, const void*,
                            cudnnTensorDescriptor_t c, void* data) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnOpTensor", as<Tensor>(a), as<Tensor>(c), data, 2, 1);
}
cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t y, void* data,
                               const void*) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnScaleTensor", as<Tensor>(y), as<Tensor>(y), data, 1, 1);
}
cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t y, void* data,
                             const void*) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(y)) return bad("a tensor descriptor is null");
  Fill work;
  work.bytes = static_cast<std::int64_t>(as<Tensor>(y)->bytes());
  return status_of(session::submit(own->stream, work, "cudnnSetTensor",
                                   {session::writes(data, as<Tensor>(y)->bytes())}));
}
cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t x,
                                   const void*, const void*, cudnnTensorDescriptor_t y,
                                   void* data) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnTransformTensor", as<Tensor>(x), as<Tensor>(y), data, 1, 0);
}
cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle, cudnnReduceTensorDescriptor_t,
                                             cudnnTensorDescriptor_t, cudnnTensorDescriptor_t c,
                                             std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(c) || !size) return bad("cudnnGetReductionWorkspaceSize: arguments");
  *size = as<Tensor>(c)->bytes();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle, cudnnReduceTensorDescriptor_t, void*,
                                std::size_t, void*, std::size_t, const void*,
                                cudnnTensorDescriptor_t a, const void*, const void*,
                                cudnnTensorDescriptor_t c, void* data) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(a) || !as<Tensor>(c)) return bad("a tensor descriptor is null");
  Reduction work;
  work.inputs = as<Tensor>(a)->elements(), work.outputs = as<Tensor>(c)->elements();
  work.in = dtype_of(as<Tensor>(a)->type), work.out = dtype_of(as<Tensor>(c)->type);
  return status_of(session::submit(own->stream, work, "cudnnReduceTensor",
                                   {session::writes(data, as<Tensor>(c)->bytes())}));
}

cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t* descriptor) {
  return create<CtcLoss>(descriptor);
}
cudnnStatus_t cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t descriptor) {
  return destroy<CtcLoss>(descriptor);
}
cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t descriptor, cudnnDataType_t type) {
  if (!as<CtcLoss>(descriptor)) return bad("CTC loss descriptor is null");
  *as<CtcLoss>(descriptor) = {type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t descriptor, cudnnDataType_t type,
                                          cudnnLossNormalizationMode_t mode,
                                          cudnnNanPropagation_t gradient) {
  if (!as<CtcLoss>(descriptor)) return bad("CTC loss descriptor is null");
  *as<CtcLoss>(descriptor) = {type, mode, gradient};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t descriptor,
                                           cudnnDataType_t type, cudnnLossNormalizationMode_t mode,
                                           cudnnNanPropagation_t gradient, int max_label) {
  if (!as<CtcLoss>(descriptor)) return bad("CTC loss descriptor is null");
  *as<CtcLoss>(descriptor) = {type, mode, gradient, max_label};
  return CUDNN_STATUS_SUCCESS;
}
#if MAYA_CUDNN_MAJOR >= 9
cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t descriptor,
                                           cudnnDataType_t type, cudnnLossNormalizationMode_t mode,
                                           int gradient, int max_label) {
  if (!as<CtcLoss>(descriptor)) return bad("CTC loss descriptor is null");
  *as<CtcLoss>(descriptor) = {type, mode, gradient, max_label};
  return CUDNN_STATUS_SUCCESS;
}
#endif
cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle,
                                           cudnnTensorDescriptor_t probabilities,
                                           cudnnTensorDescriptor_t, const int*, const int*,
                                           const int*, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t,
                                           std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(probabilities) || !size) return bad("cudnnGetCTCLossWorkspaceSize: arguments");
  *size = as<Tensor>(probabilities)->bytes() * 2;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t,
                                              cudnnCTCLossDescriptor_t,
                                              cudnnTensorDescriptor_t probabilities,
                                              cudnnTensorDescriptor_t, std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<Tensor>(probabilities) || !size) return bad("cudnnGetCTCLossWorkspaceSize_v8: arguments");
  *size = as<Tensor>(probabilities)->bytes() * 2;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t probabilities, const void*,
                           const int[], const int[], const int[], void* costs,
                           cudnnTensorDescriptor_t gradients, void* data, cudnnCTCLossAlgo_t,
                           cudnnCTCLossDescriptor_t, void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  return ctc(*own, "cudnnCTCLoss", as<Tensor>(probabilities), as<Tensor>(gradients), costs, data);
}
cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t, cudnnCTCLossDescriptor_t,
                              cudnnTensorDescriptor_t probabilities, const void*, const int[],
                              const int[], const int[], void* costs,
                              cudnnTensorDescriptor_t gradients, void* data, std::size_t, void*) {
  MAYA_CUDNN_ENTER(handle);
  return ctc(*own, "cudnnCTCLoss_v8", as<Tensor>(probabilities), as<Tensor>(gradients), costs,
             data);
}

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t* descriptor) {
  return create<SpatialTransformer>(descriptor);
}
cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(
    cudnnSpatialTransformerDescriptor_t descriptor) {
  return destroy<SpatialTransformer>(descriptor);
}
cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t descriptor,
                                                     int sampler, cudnnDataType_t type,
                                                     const int rank, const int dims[]) {
  auto* own = as<SpatialTransformer>(descriptor);
  if (!own || !dims || rank < 1 || rank > kMaxDims)
    return bad("cudnnSetSpatialTransformerNdDescriptor: arguments");
  own->sampler = sampler, own->type = type, own->rank = rank;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) own->dims[i] = dims[i];
  return CUDNN_STATUS_SUCCESS;
}
static cudnnStatus_t grid(Handle& own, const char* name, const SpatialTransformer* spatial,
                          void* data, bool forward) {
  if (!spatial || spatial->rank < 4) return bad("spatial transformer descriptor");
  Pointwise work;
  work.elements = spatial->dims[0] * spatial->dims[2] * spatial->dims[3] * 2;
  work.dtype = dtype_of(spatial->type);
  std::int64_t bytes = maya::shim::bytes_of(work.dtype, work.elements);
  std::int64_t theta = maya::shim::bytes_of(work.dtype, spatial->dims[0] * 6);
  work.bytes_read = forward ? theta : bytes, work.bytes_written = forward ? bytes : theta;
  work.flops_per_element = 6;
  return status_of(
      session::submit(own.stream, work, name,
                      {session::writes(data, static_cast<std::uint64_t>(work.bytes_written))}));
}
cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle,
                                                 cudnnSpatialTransformerDescriptor_t spatial,
                                                 const void*, void* data) {
  MAYA_CUDNN_ENTER(handle);
  return grid(*own, "cudnnSpatialTfGridGeneratorForward", as<SpatialTransformer>(spatial), data,
              true);
}
cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                  cudnnSpatialTransformerDescriptor_t spatial,
                                                  const void*, void* data) {
  MAYA_CUDNN_ENTER(handle);
  return grid(*own, "cudnnSpatialTfGridGeneratorBackward", as<SpatialTransformer>(spatial), data,
              false);
}
cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                           cudnnSpatialTransformerDescriptor_t, const void*,
                                           cudnnTensorDescriptor_t x, const void*, const void*,
                                           const void*, cudnnTensorDescriptor_t y, void* data) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnSpatialTfSamplerForward", as<Tensor>(x), as<Tensor>(y), data, 1, 8);
}
cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle,
                                            cudnnSpatialTransformerDescriptor_t, const void*,
                                            cudnnTensorDescriptor_t x, const void*, const void*,
                                            cudnnTensorDescriptor_t dx, void* data, const void*,
                                            cudnnTensorDescriptor_t, const void*, const void*,
                                            const void*, void*) {
  MAYA_CUDNN_ENTER(handle);
  return map(*own, "cudnnSpatialTfSamplerBackward", as<Tensor>(x), as<Tensor>(dx), data, 2, 16);
}

}  // extern "C"
