// Version and status texts that cuBLAS and cuBLASLt share.
#pragma once

#include <cstddef>

namespace maya::shim::cublas {

#if MAYA_CUDA_MAJOR >= 13
inline constexpr int kVersion = 130200;
inline constexpr const char* kVersionText = "13.2.0";
inline constexpr std::size_t kCudartVersion = 13020;
#else
inline constexpr int kVersion = 120900;
inline constexpr const char* kVersionText = "12.9.0";
inline constexpr std::size_t kCudartVersion = 12090;
#endif

struct StatusText {
  const char* name;
  const char* sentence;
};

inline StatusText status_text(int status) {
  switch (status) {
    case 0:
      return {"CUBLAS_STATUS_SUCCESS", "success"};
    case 1:
      return {"CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"};
    case 3:
      return {"CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"};
    case 7:
      return {"CUBLAS_STATUS_INVALID_VALUE",
              "an unsupported value or parameter was passed to the function"};
    case 8:
      return {"CUBLAS_STATUS_ARCH_MISMATCH",
              "the function requires an architectural feature absent from the device"};
    case 11:
      return {"CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"};
    case 13:
      return {"CUBLAS_STATUS_EXECUTION_FAILED", "the GPU program failed to execute"};
    case 14:
      return {"CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"};
    case 15:
      return {"CUBLAS_STATUS_NOT_SUPPORTED", "the functionality requested is not supported"};
    case 16:
      return {"CUBLAS_STATUS_LICENSE_ERROR", "the functionality requested requires some license"};
    default:
      return {"CUBLAS_STATUS_UNKNOWN", "unknown error code"};
  }
}

}  // namespace maya::shim::cublas
