// The RNN calls before cuDNN 8, which torch up to 2.3 uses: one tensor descriptor a time step,
// weights in a filter.
#if MAYA_CUDNN_MAJOR < 9
#include "shim/cudnn/rnn.h"

using namespace maya::abi;
using namespace maya::shim::cudnn;
using namespace maya;

namespace {

cudnnStatus_t bad(const char* why) { return fail(CUDNN_STATUS_BAD_PARAM, why); }

// The input width comes with the first step's tensor: batch × input × 1.
RnnShape with_input(const RnnShape& rnn, const Tensor& x) {
  RnnShape own = rnn;
  own.input = static_cast<int>(x.dims[1]);
  return own;
}

// Steps have shrinking batches when sequences end early; the op has one batch, so it takes the
// mean.
struct Steps {
  std::int64_t length{}, batch{};
};
Steps steps(int length, const cudnnTensorDescriptor_t* x) {
  std::int64_t rows = 0;
  for (int i = 0; i < length; ++i) rows += as<Tensor>(x[i])->dims[0];
  return {length, length ? (rows + length - 1) / length : 0};
}

cudnnStatus_t parameter(const RnnShape& rnn, const Piece& piece, const void* base, Filter* filter,
                        void** address) {
  if (!filter || !address) return bad("filter descriptor or address is null");
  filter->type = rnn.type, filter->format = CUDNN_TENSOR_NCHW, filter->rank = 3;
  filter->dims = {1, piece.rows, piece.cols};
  *address = static_cast<char*>(const_cast<void*>(base)) +
             maya::shim::bytes_of(dtype_of(rnn.type), piece.offset);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t run(Handle& own, const RnnShape* rnn, int length, const cudnnTensorDescriptor_t* x,
                  Direction direction, const char* name, void* to, std::uint64_t bytes) {
  if (!rnn || !x || length <= 0) return bad("RNN descriptor, steps or length");
  Steps all = steps(length, x);
  return status_of(session::submit(
      own.stream, work_of(with_input(*rnn, *as<Tensor>(x[0])), all.length, all.batch, direction),
      name, {session::writes(to, bytes)}));
}

std::uint64_t bytes(int length, const cudnnTensorDescriptor_t* steps) {
  std::uint64_t sum = 0;
  for (int i = 0; i < length; ++i) sum += as<Tensor>(steps[i])->bytes();
  return sum;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnSetRNNDescriptor_v6(cudnnHandle_t, cudnnRNNDescriptor_t descriptor,
                                       const int hidden, const int layers, cudnnDropoutDescriptor_t,
                                       cudnnRNNInputMode_t input_mode,
                                       cudnnDirectionMode_t direction, cudnnRNNMode_t cell,
                                       cudnnRNNAlgo_t, cudnnDataType_t precision) {
  auto* own = as<RnnShape>(descriptor);
  if (!own || hidden <= 0 || layers <= 0) return bad("cudnnSetRNNDescriptor_v6: sizes");
  own->hidden = hidden, own->layers = layers, own->input_mode = input_mode,
  own->direction = direction;
  own->cell = cell, own->precision = precision, own->type = precision;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNProjectionLayers(cudnnHandle_t, cudnnRNNDescriptor_t descriptor,
                                          const int projection, const int) {
  if (!as<RnnShape>(descriptor) || projection < 0) return bad("cudnnSetRNNProjectionLayers");
  as<RnnShape>(descriptor)->projection = projection;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNMatrixMathType(cudnnRNNDescriptor_t descriptor, cudnnMathType_t math) {
  if (!as<RnnShape>(descriptor)) return bad("RNN descriptor is null");
  as<RnnShape>(descriptor)->math = math;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNBiasMode(cudnnRNNDescriptor_t descriptor, cudnnRNNBiasMode_t mode) {
  if (!as<RnnShape>(descriptor)) return bad("RNN descriptor is null");
  as<RnnShape>(descriptor)->bias = mode;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNParamsSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                    cudnnTensorDescriptor_t x, std::size_t* size,
                                    cudnnDataType_t type) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<RnnShape>(descriptor) || !as<Tensor>(x) || !size)
    return bad("cudnnGetRNNParamsSize: arguments");
  auto* rnn = as<RnnShape>(descriptor);
  rnn->type = type;
  *size = static_cast<std::size_t>(
      maya::shim::bytes_of(dtype_of(type), weight_elements(with_input(*rnn, *as<Tensor>(x)))));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNLinLayerMatrixParams(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                              const int pseudo_layer, cudnnTensorDescriptor_t x,
                                              cudnnFilterDescriptor_t, const void* weights,
                                              const int linear, cudnnFilterDescriptor_t filter,
                                              void** address) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<RnnShape>(descriptor) || !as<Tensor>(x))
    return bad("cudnnGetRNNLinLayerMatrixParams: arguments");
  RnnShape rnn = with_input(*as<RnnShape>(descriptor), *as<Tensor>(x));
  return parameter(rnn, matrix(rnn, pseudo_layer, linear), weights, as<Filter>(filter), address);
}
cudnnStatus_t cudnnGetRNNLinLayerBiasParams(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                            const int pseudo_layer, cudnnTensorDescriptor_t x,
                                            cudnnFilterDescriptor_t, const void* weights,
                                            const int linear, cudnnFilterDescriptor_t filter,
                                            void** address) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<RnnShape>(descriptor) || !as<Tensor>(x))
    return bad("cudnnGetRNNLinLayerBiasParams: arguments");
  RnnShape rnn = with_input(*as<RnnShape>(descriptor), *as<Tensor>(x));
  return parameter(rnn, bias(rnn, pseudo_layer, linear), weights, as<Filter>(filter), address);
}
cudnnStatus_t cudnnGetRNNWorkspaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                       const int length, const cudnnTensorDescriptor_t* x,
                                       std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<RnnShape>(descriptor) || !x || !size || length <= 0)
    return bad("cudnnGetRNNWorkspaceSize: arguments");
  *size = workspace_bytes(*as<RnnShape>(descriptor), length, as<Tensor>(x[0])->dims[0]);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNTrainingReserveSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                             const int length, const cudnnTensorDescriptor_t* x,
                                             std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  if (!as<RnnShape>(descriptor) || !x || !size || length <= 0)
    return bad("cudnnGetRNNTrainingReserveSize: arguments");
  *size = reserve_bytes(*as<RnnShape>(descriptor), length, as<Tensor>(x[0])->dims[0]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForwardInference(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                       const int length, const cudnnTensorDescriptor_t* x,
                                       const void*, cudnnTensorDescriptor_t, const void*,
                                       cudnnTensorDescriptor_t, const void*,
                                       cudnnFilterDescriptor_t, const void*,
                                       const cudnnTensorDescriptor_t* y, void* y_data,
                                       cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t,
                                       void*, void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  return run(*own, as<RnnShape>(descriptor), length, x, Direction::forward,
             "cudnnRNNForwardInference", y_data, y ? bytes(length, y) : 0);
}
cudnnStatus_t cudnnRNNForwardTraining(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                      const int length, const cudnnTensorDescriptor_t* x,
                                      const void*, cudnnTensorDescriptor_t, const void*,
                                      cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t,
                                      const void*, const cudnnTensorDescriptor_t* y, void* y_data,
                                      cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t,
                                      void*, void*, std::size_t, void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  return run(*own, as<RnnShape>(descriptor), length, x, Direction::forward,
             "cudnnRNNForwardTraining", y_data, y ? bytes(length, y) : 0);
}
cudnnStatus_t cudnnRNNBackwardData(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                   const int length, const cudnnTensorDescriptor_t*, const void*,
                                   const cudnnTensorDescriptor_t*, const void*,
                                   cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t,
                                   const void*, cudnnFilterDescriptor_t, const void*,
                                   cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t,
                                   const void*, const cudnnTensorDescriptor_t* dx, void* dx_data,
                                   cudnnTensorDescriptor_t, void*, cudnnTensorDescriptor_t, void*,
                                   void*, std::size_t, void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  return run(*own, as<RnnShape>(descriptor), length, dx, Direction::data_gradient,
             "cudnnRNNBackwardData", dx_data, dx ? bytes(length, dx) : 0);
}
cudnnStatus_t cudnnRNNBackwardWeights(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                      const int length, const cudnnTensorDescriptor_t* x,
                                      const void*, cudnnTensorDescriptor_t, const void*,
                                      const cudnnTensorDescriptor_t*, const void*, const void*,
                                      std::size_t, cudnnFilterDescriptor_t dw, void* dw_data,
                                      const void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  return run(*own, as<RnnShape>(descriptor), length, x, Direction::weight_gradient,
             "cudnnRNNBackwardWeights", dw_data, as<Filter>(dw) ? as<Filter>(dw)->bytes() : 0);
}

}  // extern "C"
#endif
