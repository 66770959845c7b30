// The RNN calls of cuDNN 8 and 9.
#include <algorithm>

#include "shim/cudnn/rnn.h"

using namespace maya::abi;
using namespace maya::shim::cudnn;
using namespace maya;

namespace {

cudnnStatus_t bad(const char* why) { return fail(CUDNN_STATUS_BAD_PARAM, why); }

// Three dimensions, as documented: 1, rows, columns.
void describe(Tensor* tensor, int type, const Piece& piece) {
  if (!tensor) return;
  tensor->type = type, tensor->rank = piece.rows ? 3 : 0;
  tensor->dims = {1, piece.rows, piece.cols};
  tensor->strides = {piece.rows * piece.cols, piece.cols, 1};
}

void* address(const RnnShape& rnn, const void* base, const Piece& piece) {
  if (!piece.rows) return nullptr;
  return static_cast<char*>(const_cast<void*>(base)) +
         maya::shim::bytes_of(dtype_of(rnn.type), piece.offset);
}

std::uint64_t bytes(const RnnData& data) {
  return static_cast<std::uint64_t>(maya::shim::bytes_of(
      dtype_of(data.type), std::int64_t{data.max_length} * data.batch * data.vector));
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* descriptor) {
  return create<RnnShape>(descriptor);
}
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t descriptor) {
  return destroy<RnnShape>(descriptor);
}
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t descriptor, cudnnRNNAlgo_t,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias_mode,
                                       cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t type,
                                       cudnnDataType_t precision, cudnnMathType_t math, int input,
                                       int hidden, int projection, int layers,
                                       cudnnDropoutDescriptor_t, unsigned flags) {
  auto* own = as<RnnShape>(descriptor);
  if (!own || input <= 0 || hidden <= 0 || layers <= 0 || projection < 0 || projection > hidden)
    return bad("cudnnSetRNNDescriptor_v8: sizes");
  own->cell = cell, own->bias = bias_mode, own->direction = direction, own->input_mode = input_mode;
  own->type = type, own->precision = precision, own->math = math;
  own->input = input, own->hidden = hidden, own->projection = projection, own->layers = layers,
  own->flags = flags;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, int) {
  MAYA_CUDNN_ENTER(handle);
  return descriptor ? CUDNN_STATUS_SUCCESS : bad("RNN descriptor is null");
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* descriptor) {
  return create<RnnData>(descriptor);
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor) {
  return destroy<RnnData>(descriptor);
}
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int max_length, int batch,
                                        int vector, const int[], void*) {
  auto* own = as<RnnData>(descriptor);
  if (!own || max_length <= 0 || batch <= 0 || vector <= 0)
    return bad("cudnnSetRNNDataDescriptor: sizes");
  *own = {type, layout, max_length, batch, vector};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                         std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  auto* rnn = as<RnnShape>(descriptor);
  if (!rnn || !size) return bad("RNN descriptor or size is null");
  *size =
      static_cast<std::size_t>(maya::shim::bytes_of(dtype_of(rnn->type), weight_elements(*rnn)));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                      int pseudo_layer, std::size_t, const void* space, int linear,
                                      cudnnTensorDescriptor_t matrix_desc, void** matrix_address,
                                      cudnnTensorDescriptor_t bias_desc, void** bias_address) {
  MAYA_CUDNN_ENTER(handle);
  auto* rnn = as<RnnShape>(descriptor);
  if (!rnn) return bad("RNN descriptor is null");
  Piece weights = matrix(*rnn, pseudo_layer, linear), shift = bias(*rnn, pseudo_layer, linear);
  describe(as<Tensor>(matrix_desc), rnn->type, weights);
  describe(as<Tensor>(bias_desc), rnn->type, shift);
  if (matrix_address) *matrix_address = address(*rnn, space, weights);
  if (bias_address) *bias_address = address(*rnn, space, shift);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t data,
                                        std::size_t* workspace, std::size_t* reserve) {
  MAYA_CUDNN_ENTER(handle);
  auto* rnn = as<RnnShape>(descriptor);
  auto* x = as<RnnData>(data);
  if (!rnn || !x) return bad("RNN or data descriptor is null");
  if (workspace) *workspace = workspace_bytes(*rnn, x->max_length, x->batch);
  if (reserve)
    *reserve = mode == CUDNN_FWD_MODE_TRAINING ? reserve_bytes(*rnn, x->max_length, x->batch) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                              cudnnForwardMode_t, const int[], cudnnRNNDataDescriptor_t x,
                              const void*, cudnnRNNDataDescriptor_t y, void* y_data,
                              cudnnTensorDescriptor_t h, const void*, void* hy,
                              cudnnTensorDescriptor_t c, const void*, void* cy, std::size_t,
                              const void*, std::size_t, void*, std::size_t, void*) {
  MAYA_CUDNN_ENTER(handle);
  auto* rnn = as<RnnShape>(descriptor);
  auto* data = as<RnnData>(x);
  if (!rnn || !data || !as<RnnData>(y)) return bad("cudnnRNNForward: a descriptor is null");
  std::uint64_t out = bytes(*as<RnnData>(y));
  return status_of(session::submit(
      own->stream, work_of(*rnn, data->max_length, data->batch, Direction::forward),
      "cudnnRNNForward",
      {session::writes(y_data, out),
       session::writes(hy ? hy : y_data, hy && as<Tensor>(h) ? as<Tensor>(h)->bytes() : out),
       session::writes(cy ? cy : y_data, cy && as<Tensor>(c) ? as<Tensor>(c)->bytes() : out)}));
}
cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                      const int[], cudnnRNNDataDescriptor_t, const void*,
                                      const void*, cudnnRNNDataDescriptor_t x, void* dx,
                                      cudnnTensorDescriptor_t h, const void*, const void*,
                                      void* dhx, cudnnTensorDescriptor_t c, const void*,
                                      const void*, void* dcx, std::size_t, const void*, std::size_t,
                                      void*, std::size_t, void*) {
  MAYA_CUDNN_ENTER(handle);
  auto* rnn = as<RnnShape>(descriptor);
  auto* data = as<RnnData>(x);
  if (!rnn || !data) return bad("cudnnRNNBackwardData_v8: a descriptor is null");
  std::uint64_t in = bytes(*data);
  return status_of(session::submit(
      own->stream, work_of(*rnn, data->max_length, data->batch, Direction::data_gradient),
      "cudnnRNNBackwardData_v8",
      {session::writes(dx, in),
       session::writes(dhx ? dhx : dx, dhx && as<Tensor>(h) ? as<Tensor>(h)->bytes() : in),
       session::writes(dcx ? dcx : dx, dcx && as<Tensor>(c) ? as<Tensor>(c)->bytes() : in)}));
}
cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor,
                                         cudnnWgradMode_t, const int[], cudnnRNNDataDescriptor_t x,
                                         const void*, cudnnTensorDescriptor_t, const void*,
                                         cudnnRNNDataDescriptor_t, const void*, std::size_t size,
                                         void* dweights, std::size_t, void*, std::size_t, void*) {
  MAYA_CUDNN_ENTER(handle);
  auto* rnn = as<RnnShape>(descriptor);
  auto* data = as<RnnData>(x);
  if (!rnn || !data) return bad("cudnnRNNBackwardWeights_v8: a descriptor is null");
  return status_of(session::submit(
      own->stream, work_of(*rnn, data->max_length, data->batch, Direction::weight_gradient),
      "cudnnRNNBackwardWeights_v8", {session::writes(dweights, size)}));
}

}  // extern "C"
