// The convolution calls of the legacy interface, and their choice of algorithm.
//
// One algorithm per direction is modelled, the implicit GEMM that cuDNN takes for almost
// everything; the others are listed as slower or as not supported, so that both the heuristic and a
// benchmark end there.
#include <algorithm>
#include <array>

#include "shim/cudnn/convolution.h"

using namespace maya::abi;
using namespace maya::shim::cudnn;
using namespace maya;
using maya::shim::cudnn::workspace;

namespace {

using ConvolutionDesc = ConvolutionShape;

cudnnStatus_t bad(const char* why) { return fail(CUDNN_STATUS_BAD_PARAM, why); }

std::optional<Convolution> describe(const Tensor* x, const Filter* w, const ConvolutionDesc* desc,
                                    Direction direction) {
  if (!x || !w || !desc || desc->rank < 1 || desc->rank > 3) return {};
  std::array<std::int64_t, 3> padding{}, stride{}, dilation{};
  auto rank = static_cast<std::size_t>(desc->rank);
  for (std::size_t i = 0; i < rank; ++i)
    padding[i] = desc->padding[i], stride[i] = desc->stride[i], dilation[i] = desc->dilation[i];
  Steps steps{std::span(padding).first(rank), std::span(stride).first(rank),
              std::span(dilation).first(rank)};
  return convolution(*x, std::span(w->dims).first(static_cast<std::size_t>(w->rank)), steps,
                     dtype_of(x->type), desc->math_type != CUDNN_FMA_MATH, direction);
}

// Performance answers in the order a caller should try them. `order`: algorithms by preference; the
// first is the modelled one.
template <class Perf, class Algo>
cudnnStatus_t propose(const std::optional<Convolution>& work, const ConvolutionDesc* desc,
                      std::initializer_list<int> order, int requested, int* returned, Perf* results,
                      bool timed) {
  if (!returned || !results || requested < 1) return bad("no room for results");
  *returned = 0;
  if (!work) return bad("tensors, filter and convolution do not fit together");
  double ns = timed ? session::modelled_ns(*work, "cudnnConvolution") : -1e6;
  double slower = 1;
  bool first = true;
  for (int algo : order) {
    if (*returned == requested) break;
    Perf& result = results[(*returned)++];
    result = {};
    result.algo = static_cast<Algo>(algo);
    result.status = CUDNN_STATUS_SUCCESS;
    result.time = static_cast<float>(ns * slower / 1e6);  // milliseconds
    result.memory = first ? workspace(*work) : 0;
    result.determinism = CUDNN_DETERMINISTIC;
    bool plain = work->compute == DType::f32 || work->compute == DType::f64;
    result.mathType = plain                          ? CUDNN_FMA_MATH
                      : work->compute == DType::tf32 ? CUDNN_DEFAULT_MATH
                                                     : CUDNN_TENSOR_OP_MATH;
    if (desc->math_type != CUDNN_DEFAULT_MATH)
      result.mathType = static_cast<cudnnMathType_t>(desc->math_type);
    if (timed) slower *= 1.4;
    first = false;
  }
  return CUDNN_STATUS_SUCCESS;
}

constexpr std::initializer_list<int> kForward = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM};
constexpr std::initializer_list<int> kData = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1};
constexpr std::initializer_list<int> kFilter = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1};

cudnnStatus_t size_of(const std::optional<Convolution>& work, bool modelled, std::size_t* size) {
  if (!size) return bad("size is null");
  if (!work) return bad("tensors, filter and convolution do not fit together");
  *size = modelled ? workspace(*work) : 0;
  return CUDNN_STATUS_SUCCESS;
}

Epilogue epilogue_of(const Activation* activation) {
  if (!activation) return Epilogue::bias;
  return activation->mode == CUDNN_ACTIVATION_RELU       ? Epilogue::bias_relu
         : activation->mode == CUDNN_ACTIVATION_IDENTITY ? Epilogue::bias
                                                         : Epilogue::other;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* descriptor) {
  return create<ConvolutionDesc>(descriptor);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  return destroy<ConvolutionDesc>(descriptor);
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t descriptor, int rank,
                                              const int padding[], const int stride[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  auto* own = as<ConvolutionDesc>(descriptor);
  if (!own || rank < 1 || rank > kMaxDims - 2 || !padding || !stride || !dilation)
    return bad("convolution parameters");
  own->rank = rank, own->mode = mode, own->compute_type = compute;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
    if (padding[i] < 0 || stride[i] <= 0 || dilation[i] <= 0)
      return bad("padding, stride or dilation out of range");
    own->padding[i] = padding[i], own->stride[i] = stride[i], own->dilation[i] = dilation[i];
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int ph,
                                              int pw, int sh, int sw, int dh, int dw,
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  int padding[] = {ph, pw}, stride[] = {sh, sw}, dilation[] = {dh, dw};
  return cudnnSetConvolutionNdDescriptor(descriptor, 2, padding, stride, dilation, mode, compute);
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  if (!as<ConvolutionDesc>(descriptor) || groups < 1) return bad("group count");
  as<ConvolutionDesc>(descriptor)->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int* groups) {
  if (!as<ConvolutionDesc>(descriptor) || !groups) return bad("group count");
  *groups = as<ConvolutionDesc>(descriptor)->groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t type) {
  if (!as<ConvolutionDesc>(descriptor)) return bad("convolution descriptor is null");
  as<ConvolutionDesc>(descriptor)->math_type = type;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor,
                                          cudnnMathType_t* type) {
  if (!as<ConvolutionDesc>(descriptor) || !type) return bad("convolution descriptor is null");
  *type = static_cast<cudnnMathType_t>(as<ConvolutionDesc>(descriptor)->math_type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(cudnnConvolutionDescriptor_t descriptor,
                                                    cudnnTensorDescriptor_t x,
                                                    cudnnFilterDescriptor_t w, int rank,
                                                    int dims[]) {
  auto work =
      describe(as<Tensor>(x), as<Filter>(w), as<ConvolutionDesc>(descriptor), Direction::forward);
  if (!work || !dims) return bad("tensors, filter and convolution do not fit together");
  std::int64_t all[] = {work->n, work->k, work->out_d(), work->out_h(), work->out_w()};
  int spatial = as<ConvolutionDesc>(descriptor)->rank;
  if (rank != spatial + 2) return bad("the number of dimensions is not that of the convolution");
  for (int i = 0; i < rank; ++i) dims[i] = static_cast<int>(all[i < 2 ? i : i + 3 - spatial]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t, int* count) {
  if (!count) return bad("count is null");
  *count = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t, int* count) {
  if (!count) return bad("count is null");
  *count = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t, int* count) {
  if (!count) return bad("count is null");
  *count = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t, int requested, int* returned,
    cudnnConvolutionFwdAlgoPerf_t results[]) {
  MAYA_CUDNN_ENTER(handle);
  auto* desc = as<ConvolutionDesc>(conv);
  return propose<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
      describe(as<Tensor>(x), as<Filter>(w), desc, Direction::forward), desc, kForward, requested,
      returned, results, false);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx, int requested, int* returned,
    cudnnConvolutionBwdDataAlgoPerf_t results[]) {
  MAYA_CUDNN_ENTER(handle);
  auto* desc = as<ConvolutionDesc>(conv);
  return propose<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
      describe(as<Tensor>(dx), as<Filter>(w), desc, Direction::data_gradient), desc, kData,
      requested, returned, results, false);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw, int requested, int* returned,
    cudnnConvolutionBwdFilterAlgoPerf_t results[]) {
  MAYA_CUDNN_ENTER(handle);
  auto* desc = as<ConvolutionDesc>(conv);
  return propose<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
      describe(as<Tensor>(x), as<Filter>(dw), desc, Direction::weight_gradient), desc, kFilter,
      requested, returned, results, false);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, const void*, cudnnFilterDescriptor_t w,
    const void*, cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t, void*, int requested,
    int* returned, cudnnConvolutionFwdAlgoPerf_t results[], void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  auto* desc = as<ConvolutionDesc>(conv);
  return propose<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
      describe(as<Tensor>(x), as<Filter>(w), desc, Direction::forward), desc, kForward, requested,
      returned, results, true);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                   cudnnFilterDescriptor_t w,
                                                   cudnnConvolutionDescriptor_t conv,
                                                   cudnnTensorDescriptor_t y, int requested,
                                                   int* returned,
                                                   cudnnConvolutionFwdAlgoPerf_t results[]) {
  return cudnnFindConvolutionForwardAlgorithmEx(handle, x, nullptr, w, nullptr, conv, y, nullptr,
                                                requested, returned, results, nullptr, 0);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, const void*, cudnnTensorDescriptor_t,
    const void*, cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx, void*,
    int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t results[], void*, std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  auto* desc = as<ConvolutionDesc>(conv);
  return propose<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
      describe(as<Tensor>(dx), as<Filter>(w), desc, Direction::data_gradient), desc, kData,
      requested, returned, results, true);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, const void*, cudnnTensorDescriptor_t,
    const void*, cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw, void*,
    int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t results[], void*,
    std::size_t) {
  MAYA_CUDNN_ENTER(handle);
  auto* desc = as<ConvolutionDesc>(conv);
  return propose<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
      describe(as<Tensor>(x), as<Filter>(dw), desc, Direction::weight_gradient), desc, kFilter,
      requested, returned, results, true);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t algo,
    std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  return size_of(
      describe(as<Tensor>(x), as<Filter>(w), as<ConvolutionDesc>(conv), Direction::forward),
      algo == *kForward.begin(), size);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algo, std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  return size_of(
      describe(as<Tensor>(dx), as<Filter>(w), as<ConvolutionDesc>(conv), Direction::data_gradient),
      algo == *kData.begin(), size);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t,
    cudnnConvolutionDescriptor_t conv, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, std::size_t* size) {
  MAYA_CUDNN_ENTER(handle);
  return size_of(describe(as<Tensor>(x), as<Filter>(dw), as<ConvolutionDesc>(conv),
                          Direction::weight_gradient),
                 algo == *kFilter.begin(), size);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t x, const void*,
                                      cudnnFilterDescriptor_t w, const void*,
                                      cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t,
                                      void*, std::size_t, const void* beta,
                                      cudnnTensorDescriptor_t y, void* y_data) {
  MAYA_CUDNN_ENTER(handle);
  auto work = describe(as<Tensor>(x), as<Filter>(w), as<ConvolutionDesc>(conv), Direction::forward);
  if (!work || !as<Tensor>(y) || !alpha || !beta)
    return bad("cudnnConvolutionForward: descriptors do not fit together");
  return status_of(session::submit(own->stream, *work, "cudnnConvolutionForward",
                                   {session::writes(y_data, as<Tensor>(y)->bytes())}));
}
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x, const void*,
    cudnnFilterDescriptor_t w, const void*, cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t, void*, std::size_t, const void*, cudnnTensorDescriptor_t,
    const void*, cudnnTensorDescriptor_t, const void*, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t y, void* y_data) {
  MAYA_CUDNN_ENTER(handle);
  auto work = describe(as<Tensor>(x), as<Filter>(w), as<ConvolutionDesc>(conv), Direction::forward);
  if (!work || !as<Tensor>(y) || !alpha)
    return bad("cudnnConvolutionBiasActivationForward: descriptors do not fit together");
  work->epilogue = epilogue_of(as<Activation>(activation));
  return status_of(session::submit(own->stream, *work, "cudnnConvolutionBiasActivationForward",
                                   {session::writes(y_data, as<Tensor>(y)->bytes())}));
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t w, const void*,
                                           cudnnTensorDescriptor_t, const void*,
                                           cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t, void*, std::size_t,
                                           const void* beta, cudnnTensorDescriptor_t dx,
                                           void* data) {
  MAYA_CUDNN_ENTER(handle);
  auto work =
      describe(as<Tensor>(dx), as<Filter>(w), as<ConvolutionDesc>(conv), Direction::data_gradient);
  if (!work || !alpha || !beta)
    return bad("cudnnConvolutionBackwardData: descriptors do not fit together");
  return status_of(session::submit(own->stream, *work, "cudnnConvolutionBackwardData",
                                   {session::writes(data, as<Tensor>(dx)->bytes())}));
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t x, const void*,
                                             cudnnTensorDescriptor_t, const void*,
                                             cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t, void*, std::size_t,
                                             const void* beta, cudnnFilterDescriptor_t dw,
                                             void* data) {
  MAYA_CUDNN_ENTER(handle);
  auto work = describe(as<Tensor>(x), as<Filter>(dw), as<ConvolutionDesc>(conv),
                       Direction::weight_gradient);
  if (!work || !alpha || !beta)
    return bad("cudnnConvolutionBackwardFilter: descriptors do not fit together");
  return status_of(session::submit(own->stream, *work, "cudnnConvolutionBackwardFilter",
                                   {session::writes(data, as<Filter>(dw)->bytes())}));
}
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void*,
                                           cudnnTensorDescriptor_t dy, const void*, const void*,
                                           cudnnTensorDescriptor_t db, void* data) {
  MAYA_CUDNN_ENTER(handle);
  auto* from = as<Tensor>(dy);
  auto* to = as<Tensor>(db);
  if (!from || !to) return bad("cudnnConvolutionBackwardBias: a descriptor is null");
  Reduction work;
  work.inputs = from->elements(), work.outputs = to->elements();
  work.in = dtype_of(from->type), work.out = dtype_of(to->type);
  work.inner = !from->channels_last();
  return status_of(session::submit(own->stream, work, "cudnnConvolutionBackwardBias",
                                   {session::writes(data, to->bytes())}));
}

}  // extern "C"
