// Tensor, filter and the small descriptors: create, set, get, destroy.
#include "shim/cudnn/tensor.h"

using namespace maya::abi;
using namespace maya::shim::cudnn;

namespace {

cudnnStatus_t bad(const char* why) { return fail(CUDNN_STATUS_BAD_PARAM, why); }

cudnnStatus_t set_tensor(Tensor* own, int type, int rank, const int* dims, const int* strides) {
  if (!own || !dims) return bad("tensor descriptor or dimensions are null");
  if (rank < 1 || rank > kMaxDims)
    return fail(CUDNN_STATUS_NOT_SUPPORTED, "tensor rank must be 1 to 8");
  own->type = type, own->rank = rank;
  std::int64_t packed = 1;
  for (int i = rank - 1; i >= 0; --i) {
    auto at = static_cast<std::size_t>(i);
    if (dims[i] < 0) return bad("a tensor dimension is negative");
    own->dims[at] = dims[i];
    own->strides[at] = strides ? strides[i] : packed;
    packed *= dims[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

void pack(Tensor* own, int format) {
  std::int64_t step = 1;
  auto take = [&](std::size_t i) { own->strides[i] = step, step *= own->dims[i]; };
  auto rank = static_cast<std::size_t>(own->rank);
  if (format == CUDNN_TENSOR_NHWC && rank > 2) {
    take(1);
    for (std::size_t i = rank; i-- > 2;) take(i);
    take(0);
  } else {
    for (std::size_t i = rank; i-- > 0;) take(i);
  }
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  return create<Tensor>(descriptor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  return destroy<Tensor>(descriptor);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                         int rank, const int dims[], const int strides[]) {
  return set_tensor(as<Tensor>(descriptor), type, rank, dims, strides);
}
cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t descriptor,
                                           cudnnTensorFormat_t format, cudnnDataType_t type,
                                           int rank, const int dims[]) {
  cudnnStatus_t status = set_tensor(as<Tensor>(descriptor), type, rank, dims, nullptr);
  if (status == CUDNN_STATUS_SUCCESS) pack(as<Tensor>(descriptor), format);
  return status;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  int dims[] = {n, c, h, w};
  return cudnnSetTensorNdDescriptorEx(descriptor, format, type, 4, dims);
}
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int ns, int cs, int hs,
                                           int ws) {
  int dims[] = {n, c, h, w}, strides[] = {ns, cs, hs, ws};
  return set_tensor(as<Tensor>(descriptor), type, 4, dims, strides);
}
cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, int requested,
                                         cudnnDataType_t* type, int* rank, int dims[],
                                         int strides[]) {
  auto* own = as<Tensor>(descriptor);
  if (!own) return bad("tensor descriptor is null");
  if (type) *type = static_cast<cudnnDataType_t>(own->type);
  if (rank) *rank = own->rank;
  for (int i = 0; i < requested && i < own->rank; ++i) {
    if (dims) dims[i] = static_cast<int>(own->dims[static_cast<std::size_t>(i)]);
    if (strides) strides[i] = static_cast<int>(own->strides[static_cast<std::size_t>(i)]);
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t* type,
                                         int* n, int* c, int* h, int* w, int* ns, int* cs, int* hs,
                                         int* ws) {
  auto* own = as<Tensor>(descriptor);
  if (!own || own->rank != 4) return bad("tensor descriptor is null or not of rank 4");
  if (type) *type = static_cast<cudnnDataType_t>(own->type);
  int* dims[] = {n, c, h, w};
  int* strides[] = {ns, cs, hs, ws};
  for (std::size_t i = 0; i < 4; ++i) {
    if (dims[i]) *dims[i] = static_cast<int>(own->dims[i]);
    if (strides[i]) *strides[i] = static_cast<int>(own->strides[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t descriptor, std::size_t* size) {
  auto* own = as<Tensor>(descriptor);
  if (!own || !size) return bad("tensor descriptor or size is null");
  *size = own->bytes();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor) {
  return create<Filter>(descriptor);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  return destroy<Filter>(descriptor);
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int dims[]) {
  auto* own = as<Filter>(descriptor);
  if (!own || !dims) return bad("filter descriptor or dimensions are null");
  if (rank < 1 || rank > kMaxDims)
    return fail(CUDNN_STATUS_NOT_SUPPORTED, "filter rank must be 1 to 8");
  own->type = type, own->format = format, own->rank = rank;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] <= 0) return bad("a filter dimension is not positive");
    own->dims[static_cast<std::size_t>(i)] = dims[i];
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  int dims[] = {k, c, h, w};
  return cudnnSetFilterNdDescriptor(descriptor, type, format, 4, dims);
}
cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, int requested,
                                         cudnnDataType_t* type, cudnnTensorFormat_t* format,
                                         int* rank, int dims[]) {
  auto* own = as<Filter>(descriptor);
  if (!own) return bad("filter descriptor is null");
  if (type) *type = static_cast<cudnnDataType_t>(own->type);
  if (format) *format = static_cast<cudnnTensorFormat_t>(own->format);
  if (rank) *rank = own->rank;
  for (int i = 0; dims && i < requested && i < own->rank; ++i)
    dims[i] = static_cast<int>(own->dims[static_cast<std::size_t>(i)]);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetFilterSizeInBytes(cudnnFilterDescriptor_t descriptor, std::size_t* size) {
  auto* own = as<Filter>(descriptor);
  if (!own || !size) return bad("filter descriptor or size is null");
  *size = own->bytes();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* descriptor) {
  return create<Activation>(descriptor);
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t descriptor) {
  return destroy<Activation>(descriptor);
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t descriptor,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double coefficient) {
  auto* own = as<Activation>(descriptor);
  if (!own) return bad("activation descriptor is null");
  own->mode = mode, own->nan = nan, own->coefficient = coefficient;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetActivationDescriptor(cudnnActivationDescriptor_t descriptor,
                                           cudnnActivationMode_t* mode, cudnnNanPropagation_t* nan,
                                           double* coefficient) {
  auto* own = as<Activation>(descriptor);
  if (!own) return bad("activation descriptor is null");
  if (mode) *mode = static_cast<cudnnActivationMode_t>(own->mode);
  if (nan) *nan = static_cast<cudnnNanPropagation_t>(own->nan);
  if (coefficient) *coefficient = own->coefficient;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* descriptor) {
  return create<Pooling>(descriptor);
}
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t descriptor) {
  return destroy<Pooling>(descriptor);
}
cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t mode, cudnnNanPropagation_t nan,
                                          int rank, const int window[], const int padding[],
                                          const int stride[]) {
  auto* own = as<Pooling>(descriptor);
  if (!own || rank < 1 || rank > kMaxDims || !window || !padding || !stride)
    return bad("pooling parameters");
  own->mode = mode, own->nan = nan, own->rank = rank;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i)
    own->window[i] = window[i], own->padding[i] = padding[i], own->stride[i] = stride[i];
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t descriptor,
                                          cudnnPoolingMode_t mode, cudnnNanPropagation_t nan,
                                          int wh, int ww, int ph, int pw, int sh, int sw) {
  int window[] = {wh, ww}, padding[] = {ph, pw}, stride[] = {sh, sw};
  return cudnnSetPoolingNdDescriptor(descriptor, mode, nan, 2, window, padding, stride);
}

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* descriptor) {
  return create<OpTensor>(descriptor);
}
cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t descriptor) {
  return destroy<OpTensor>(descriptor);
}
cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t descriptor, cudnnOpTensorOp_t op,
                                         cudnnDataType_t type, cudnnNanPropagation_t nan) {
  auto* own = as<OpTensor>(descriptor);
  if (!own) return bad("op tensor descriptor is null");
  *own = {op, type, nan};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* descriptor) {
  return create<ReduceTensor>(descriptor);
}
cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t descriptor) {
  return destroy<ReduceTensor>(descriptor);
}
cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t descriptor,
                                             cudnnReduceTensorOp_t op, cudnnDataType_t type,
                                             cudnnNanPropagation_t nan, int indices,
                                             int index_type) {
  auto* own = as<ReduceTensor>(descriptor);
  if (!own) return bad("reduce tensor descriptor is null");
  *own = {op, type, nan, indices, index_type};
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
