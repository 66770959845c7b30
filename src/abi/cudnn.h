// cuDNN 8 and 9: status, handles and enums of the legacy interface; the graph interface is in
// cudnn_backend.h.
#pragma once

#include "abi/cudnn_backend.h"
#include "abi/handles.h"

namespace maya::abi {

struct cudnnContext;
struct cudnnTensorStruct;
struct cudnnFilterStruct;
struct cudnnConvolutionStruct;
struct cudnnPoolingStruct;
struct cudnnActivationStruct;
struct cudnnLRNStruct;
struct cudnnOpTensorStruct;
struct cudnnReduceTensorStruct;
struct cudnnDropoutStruct;
struct cudnnRNNStruct;
struct cudnnRNNDataStruct;
struct cudnnAttnStruct;
struct cudnnSeqDataStruct;
struct cudnnSpatialTransformerStruct;
struct cudnnCTCLossStruct;
struct cudnnPersistentRNNPlan;
using cudnnHandle_t = cudnnContext*;
using cudnnTensorDescriptor_t = cudnnTensorStruct*;
using cudnnFilterDescriptor_t = cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = cudnnConvolutionStruct*;
using cudnnPoolingDescriptor_t = cudnnPoolingStruct*;
using cudnnActivationDescriptor_t = cudnnActivationStruct*;
using cudnnLRNDescriptor_t = cudnnLRNStruct*;
using cudnnOpTensorDescriptor_t = cudnnOpTensorStruct*;
using cudnnReduceTensorDescriptor_t = cudnnReduceTensorStruct*;
using cudnnDropoutDescriptor_t = cudnnDropoutStruct*;
using cudnnRNNDescriptor_t = cudnnRNNStruct*;
using cudnnRNNDataDescriptor_t = cudnnRNNDataStruct*;
using cudnnAttnDescriptor_t = cudnnAttnStruct*;
using cudnnSeqDataDescriptor_t = cudnnSeqDataStruct*;
using cudnnSpatialTransformerDescriptor_t = cudnnSpatialTransformerStruct*;
using cudnnCTCLossDescriptor_t = cudnnCTCLossStruct*;

// The plain codes have the same number in both majors. NOT_SUPPORTED, ARCH_MISMATCH and the like
// moved in 9 (thousands are categories), so those have a name per major and an alias that follows
// MAYA_CUDNN_MAJOR.
enum cudnnStatus_t : int {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS8_NOT_INITIALIZED = 1,
  CUDNN_STATUS8_ALLOC_FAILED = 2,
  CUDNN_STATUS8_BAD_PARAM = 3,
  CUDNN_STATUS8_INTERNAL_ERROR = 4,
  CUDNN_STATUS8_INVALID_VALUE = 5,
  CUDNN_STATUS8_ARCH_MISMATCH = 6,
  CUDNN_STATUS8_MAPPING_ERROR = 7,
  CUDNN_STATUS8_EXECUTION_FAILED = 8,
  CUDNN_STATUS8_NOT_SUPPORTED = 9,
  CUDNN_STATUS9_NOT_INITIALIZED = 1001,
  CUDNN_STATUS9_BAD_PARAM = 2000,
  CUDNN_STATUS9_BAD_PARAM_NULL_POINTER = 2002,
  CUDNN_STATUS9_BAD_PARAM_NOT_FINALIZED = 2004,
  CUDNN_STATUS9_NOT_SUPPORTED = 3000,
  CUDNN_STATUS9_INTERNAL_ERROR = 4000,
  CUDNN_STATUS9_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
  CUDNN_STATUS9_EXECUTION_FAILED = 5000,
};
#if defined(MAYA_CUDNN_MAJOR) && MAYA_CUDNN_MAJOR < 9
constexpr cudnnStatus_t CUDNN_STATUS_NOT_INITIALIZED = CUDNN_STATUS8_NOT_INITIALIZED;
constexpr cudnnStatus_t CUDNN_STATUS_BAD_PARAM = CUDNN_STATUS8_BAD_PARAM;
constexpr cudnnStatus_t CUDNN_STATUS_NOT_SUPPORTED = CUDNN_STATUS8_NOT_SUPPORTED;
constexpr cudnnStatus_t CUDNN_STATUS_INTERNAL_ERROR = CUDNN_STATUS8_INTERNAL_ERROR;
constexpr cudnnStatus_t CUDNN_STATUS_EXECUTION_FAILED = CUDNN_STATUS8_EXECUTION_FAILED;
constexpr cudnnStatus_t CUDNN_STATUS_ALLOC_FAILED = CUDNN_STATUS8_ALLOC_FAILED;
#else
constexpr cudnnStatus_t CUDNN_STATUS_NOT_INITIALIZED = CUDNN_STATUS9_NOT_INITIALIZED;
constexpr cudnnStatus_t CUDNN_STATUS_BAD_PARAM = CUDNN_STATUS9_BAD_PARAM;
constexpr cudnnStatus_t CUDNN_STATUS_NOT_SUPPORTED = CUDNN_STATUS9_NOT_SUPPORTED;
constexpr cudnnStatus_t CUDNN_STATUS_INTERNAL_ERROR = CUDNN_STATUS9_INTERNAL_ERROR;
constexpr cudnnStatus_t CUDNN_STATUS_EXECUTION_FAILED = CUDNN_STATUS9_EXECUTION_FAILED;
constexpr cudnnStatus_t CUDNN_STATUS_ALLOC_FAILED =
    CUDNN_STATUS9_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
#endif

enum cudnnDataType_t : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT8 = 3,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_INT8x4 = 5,
  CUDNN_DATA_UINT8 = 6,
  CUDNN_DATA_UINT8x4 = 7,
  CUDNN_DATA_INT8x32 = 8,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_INT64 = 10,
  CUDNN_DATA_BOOLEAN = 11,
  CUDNN_DATA_FP8_E4M3 = 12,
  CUDNN_DATA_FP8_E5M2 = 13,
  CUDNN_DATA_FAST_FLOAT_FOR_FP8 = 14,
  CUDNN_DATA_FP8_E8M0 = 15,
  CUDNN_DATA_FP4_E2M1 = 16,
  CUDNN_DATA_INT4 = 17,
  CUDNN_DATA_UINT4 = 18,
};

enum cudnnTensorFormat_t : int {
  CUDNN_TENSOR_NCHW = 0,
  CUDNN_TENSOR_NHWC = 1,
  CUDNN_TENSOR_NCHW_VECT_C = 2,
};

enum cudnnMathType_t : int {
  CUDNN_DEFAULT_MATH = 0,
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
  CUDNN_FMA_MATH = 3,
};

enum cudnnNanPropagation_t : int { CUDNN_NOT_PROPAGATE_NAN = 0, CUDNN_PROPAGATE_NAN = 1 };
enum cudnnDeterminism_t : int { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 };
enum cudnnConvolutionMode_t : int { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 };
enum cudnnReorderType_t : int { CUDNN_DEFAULT_REORDER = 0, CUDNN_NO_REORDER = 1 };
enum cudnnErrQueryMode_t : int {
  CUDNN_ERRQUERY_RAWCODE = 0,
  CUDNN_ERRQUERY_NONBLOCKING = 1,
  CUDNN_ERRQUERY_BLOCKING = 2,
};

enum cudnnConvolutionFwdAlgo_t : int {
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
  CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
  CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
  CUDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
  CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
  CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
  CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
  CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8,
};

enum cudnnConvolutionBwdDataAlgo_t : int {
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT = 2,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING = 3,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD = 4,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED = 5,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT = 6,
};

enum cudnnConvolutionBwdFilterAlgo_t : int {
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT = 2,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 = 3,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD = 4,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED = 5,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING = 6,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT = 7,
};

struct cudnnConvolutionFwdAlgoPerfStruct {
  cudnnConvolutionFwdAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};
using cudnnConvolutionFwdAlgoPerf_t = cudnnConvolutionFwdAlgoPerfStruct;

struct cudnnConvolutionBwdDataAlgoPerfStruct {
  cudnnConvolutionBwdDataAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};
using cudnnConvolutionBwdDataAlgoPerf_t = cudnnConvolutionBwdDataAlgoPerfStruct;

struct cudnnConvolutionBwdFilterAlgoPerfStruct {
  cudnnConvolutionBwdFilterAlgo_t algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};
using cudnnConvolutionBwdFilterAlgoPerf_t = cudnnConvolutionBwdFilterAlgoPerfStruct;

enum cudnnPoolingMode_t : int {
  CUDNN_POOLING_MAX = 0,
  CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
  CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2,
  CUDNN_POOLING_MAX_DETERMINISTIC = 3,
};

enum cudnnActivationMode_t : int {
  CUDNN_ACTIVATION_SIGMOID = 0,
  CUDNN_ACTIVATION_RELU = 1,
  CUDNN_ACTIVATION_TANH = 2,
  CUDNN_ACTIVATION_CLIPPED_RELU = 3,
  CUDNN_ACTIVATION_ELU = 4,
  CUDNN_ACTIVATION_IDENTITY = 5,
  CUDNN_ACTIVATION_SWISH = 6,
};

enum cudnnSoftmaxAlgorithm_t : int {
  CUDNN_SOFTMAX_FAST = 0,
  CUDNN_SOFTMAX_ACCURATE = 1,
  CUDNN_SOFTMAX_LOG = 2
};
enum cudnnSoftmaxMode_t : int { CUDNN_SOFTMAX_MODE_INSTANCE = 0, CUDNN_SOFTMAX_MODE_CHANNEL = 1 };

enum cudnnBatchNormMode_t : int {
  CUDNN_BATCHNORM_PER_ACTIVATION = 0,
  CUDNN_BATCHNORM_SPATIAL = 1,
  CUDNN_BATCHNORM_SPATIAL_PERSISTENT = 2,
};
enum cudnnBatchNormOps_t : int {
  CUDNN_BATCHNORM_OPS_BN = 0,
  CUDNN_BATCHNORM_OPS_BN_ACTIVATION = 1,
  CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION = 2,
};

enum cudnnOpTensorOp_t : int {
  CUDNN_OP_TENSOR_ADD = 0,
  CUDNN_OP_TENSOR_MUL = 1,
  CUDNN_OP_TENSOR_MIN = 2,
  CUDNN_OP_TENSOR_MAX = 3,
  CUDNN_OP_TENSOR_SQRT = 4,
  CUDNN_OP_TENSOR_NOT = 5,
};

enum cudnnReduceTensorOp_t : int {
  CUDNN_REDUCE_TENSOR_ADD = 0,
  CUDNN_REDUCE_TENSOR_MUL = 1,
  CUDNN_REDUCE_TENSOR_MIN = 2,
  CUDNN_REDUCE_TENSOR_MAX = 3,
  CUDNN_REDUCE_TENSOR_AMAX = 4,
  CUDNN_REDUCE_TENSOR_AVG = 5,
  CUDNN_REDUCE_TENSOR_NORM1 = 6,
  CUDNN_REDUCE_TENSOR_NORM2 = 7,
  CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS = 8,
};

enum cudnnRNNMode_t : int { CUDNN_RNN_RELU = 0, CUDNN_RNN_TANH = 1, CUDNN_LSTM = 2, CUDNN_GRU = 3 };
enum cudnnRNNBiasMode_t : int {
  CUDNN_RNN_NO_BIAS = 0,
  CUDNN_RNN_SINGLE_INP_BIAS = 1,
  CUDNN_RNN_DOUBLE_BIAS = 2,
  CUDNN_RNN_SINGLE_REC_BIAS = 3,
};
enum cudnnDirectionMode_t : int { CUDNN_UNIDIRECTIONAL = 0, CUDNN_BIDIRECTIONAL = 1 };
enum cudnnRNNInputMode_t : int { CUDNN_LINEAR_INPUT = 0, CUDNN_SKIP_INPUT = 1 };
enum cudnnRNNAlgo_t : int {
  CUDNN_RNN_ALGO_STANDARD = 0,
  CUDNN_RNN_ALGO_PERSIST_STATIC = 1,
  CUDNN_RNN_ALGO_PERSIST_DYNAMIC = 2,
  CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3,
};
enum cudnnForwardMode_t : int { CUDNN_FWD_MODE_INFERENCE = 0, CUDNN_FWD_MODE_TRAINING = 1 };
enum cudnnWgradMode_t : int { CUDNN_WGRAD_MODE_ADD = 0, CUDNN_WGRAD_MODE_SET = 1 };
enum cudnnRNNDataLayout_t : int {
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0,
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1,
  CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2,
};
enum cudnnCTCLossAlgo_t : int {
  CUDNN_CTC_LOSS_ALGO_DETERMINISTIC = 0,
  CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC = 1,
};
enum cudnnLossNormalizationMode_t : int {
  CUDNN_LOSS_NORMALIZATION_NONE = 0,
  CUDNN_LOSS_NORMALIZATION_SOFTMAX = 1,
};

}  // namespace maya::abi
