// What a cudnnHandle_t points to, and the small vocabulary every cuDNN entry point uses.
#pragma once

#include <cstdint>

#include "abi/cudnn.h"
#include "session/handles.h"
#include "shim/common/element.h"

namespace maya::shim::cudnn {

using namespace maya::abi;

struct Handle {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn");
  void* stream{};
};

// nullptr for what is no living handle.
inline Handle* alive(cudnnHandle_t handle) { return session::find_handle<Handle>(handle); }

inline cudnnStatus_t status_of(int cuda_error) {
  return cuda_error == 0   ? CUDNN_STATUS_SUCCESS
         : cuda_error == 1 ? CUDNN_STATUS_BAD_PARAM
         : cuda_error == 2 ? CUDNN_STATUS_ALLOC_FAILED
                           : CUDNN_STATUS_EXECUTION_FAILED;
}

inline DType dtype_of(int cudnn_type) {
  switch (cudnn_type) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_FAST_FLOAT_FOR_FP8:
      return DType::f32;
    case CUDNN_DATA_DOUBLE:
      return DType::f64;
    case CUDNN_DATA_HALF:
      return DType::f16;
    case CUDNN_DATA_BFLOAT16:
      return DType::bf16;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_INT8x32:
      return DType::i8;
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_UINT8x4:
    case CUDNN_DATA_FP8_E8M0:
      return DType::u8;
    case CUDNN_DATA_INT32:
      return DType::i32;
    case CUDNN_DATA_INT64:
      return DType::i64;
    case CUDNN_DATA_BOOLEAN:
      return DType::boolean;
    case CUDNN_DATA_FP8_E4M3:
      return DType::f8e4m3;
    case CUDNN_DATA_FP8_E5M2:
      return DType::f8e5m2;
    case CUDNN_DATA_FP4_E2M1:
    case CUDNN_DATA_INT4:
    case CUDNN_DATA_UINT4:
      return DType::f4;
    default:
      return DType::unknown;
  }
}

// Remembers why a call failed, for cudnnGetLastErrorString; returns `status`.
cudnnStatus_t fail(cudnnStatus_t status, const char* why);

#define MAYA_CUDNN_ENTER(handle)                                          \
  maya::session::Call maya_call;                                          \
  auto* own = maya::shim::cudnn::alive(handle);                           \
  if (!own)                                                               \
  return maya::shim::cudnn::fail(maya::abi::CUDNN_STATUS_NOT_INITIALIZED, \
                                 "handle is null or destroyed")

}  // namespace maya::shim::cudnn
