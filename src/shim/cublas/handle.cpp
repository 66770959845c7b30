// Library context: creation, stream, workspace, modes, versions.
#include "shim/cublas/handle.h"

#include "shim/cublas/version.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
namespace session = maya::session;

namespace {

template <class T, class U>
cublasStatus_t get(cublasHandle_t handle, T* to, U Handle::*field) {
  Handle* own = alive(handle);
  if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!to) return CUBLAS_STATUS_INVALID_VALUE;
  *to = static_cast<T>(own->*field);
  return CUBLAS_STATUS_SUCCESS;
}

template <class U>
cublasStatus_t set(cublasHandle_t handle, U Handle::*field, U value) {
  Handle* own = alive(handle);
  if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
  own->*field = value;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  session::Call call;
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  session::note_version("cublas", kVersionText);
  *handle = static_cast<cublasHandle_t>(session::make_handle<Handle>());
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  session::Call call;
  return session::drop_handle<Handle>(handle) ? CUBLAS_STATUS_SUCCESS
                                              : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = kVersion;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = kVersion / 10000;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = kVersion / 100 % 100;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = kVersion % 100;
      return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

std::size_t cublasGetCudartVersion() { return kCudartVersion; }

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream_st* stream) {
  Handle* own = alive(handle);
  if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
  own->stream = reinterpret_cast<void*>(stream);
  own->workspace = nullptr;  // documented: the workspace goes back to the default pool
  own->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, CUstream_st** stream) {
  Handle* own = alive(handle);
  if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!stream) return CUBLAS_STATUS_INVALID_VALUE;
  *stream = reinterpret_cast<CUstream_st*>(own->stream);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  Handle* own = alive(handle);
  if (!own) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256) return CUBLAS_STATUS_INVALID_VALUE;
  own->workspace = workspace;
  own->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return get(handle, mode, &Handle::pointer_mode);
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
    return CUBLAS_STATUS_INVALID_VALUE;
  return set(handle, &Handle::pointer_mode, static_cast<int>(mode));
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return get(handle, mode, &Handle::atomics);
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return set(handle, &Handle::atomics, static_cast<int>(mode));
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return get(handle, mode, &Handle::math_mode);
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  if (static_cast<int>(mode) & ~31) return CUBLAS_STATUS_INVALID_VALUE;
  return set(handle, &Handle::math_mode, static_cast<int>(mode));
}

cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* target) {
  return get(handle, target, &Handle::sm_count_target);
}
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int target) {
  if (target < 0 || target > session::gpu().sms) return CUBLAS_STATUS_INVALID_VALUE;
  return set(handle, &Handle::sm_count_target, target);
}

#if MAYA_CUDA_MAJOR >= 13
cublasStatus_t cublasGetEmulationStrategy(cublasHandle_t handle, int* value) {
  return get(handle, value, &Handle::emulation_strategy);
}
cublasStatus_t cublasSetEmulationStrategy(cublasHandle_t handle, int value) {
  return set(handle, &Handle::emulation_strategy, value);
}
cublasStatus_t cublasGetEmulationSpecialValuesSupport(cublasHandle_t handle, int* value) {
  return get(handle, value, &Handle::emulation_special_values);
}
cublasStatus_t cublasSetEmulationSpecialValuesSupport(cublasHandle_t handle, int value) {
  return set(handle, &Handle::emulation_special_values, value);
}
cublasStatus_t cublasGetFixedPointEmulationMantissaControl(cublasHandle_t handle, int* value) {
  return get(handle, value, &Handle::emulation_mantissa_control);
}
cublasStatus_t cublasSetFixedPointEmulationMantissaControl(cublasHandle_t handle, int value) {
  return set(handle, &Handle::emulation_mantissa_control, value);
}
cublasStatus_t cublasGetFixedPointEmulationMaxMantissaBitCount(cublasHandle_t handle, int* value) {
  return get(handle, value, &Handle::emulation_max_bits);
}
cublasStatus_t cublasSetFixedPointEmulationMaxMantissaBitCount(cublasHandle_t handle, int value) {
  return set(handle, &Handle::emulation_max_bits, value);
}
cublasStatus_t cublasGetFixedPointEmulationMantissaBitOffset(cublasHandle_t handle, int* value) {
  return get(handle, value, &Handle::emulation_bit_offset);
}
cublasStatus_t cublasSetFixedPointEmulationMantissaBitOffset(cublasHandle_t handle, int value) {
  return set(handle, &Handle::emulation_bit_offset, value);
}
cublasStatus_t cublasGetFixedPointEmulationMantissaBitCountPointer(cublasHandle_t handle,
                                                                   int** value) {
  return get(handle, value, &Handle::emulation_bit_count);
}
cublasStatus_t cublasSetFixedPointEmulationMantissaBitCountPointer(cublasHandle_t handle,
                                                                   int* value) {
  return set(handle, &Handle::emulation_bit_count, value);
}
#endif

const char* cublasGetStatusName(cublasStatus_t status) { return status_text(status).name; }
const char* cublasGetStatusString(cublasStatus_t status) { return status_text(status).sentence; }

cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetLoggerCallback(void (*)(const char*)) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetLoggerCallback(void (**callback)(const char*)) {
  if (!callback) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
