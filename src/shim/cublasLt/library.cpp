// cuBLASLt itself: handle, versions, logger, cache settings.
#include <atomic>
#include <cstdio>

#include "abi/cublas.h"
#include "shim/cublas/version.h"
#include "shim/cublasLt/handle.h"

using namespace maya::abi;
using namespace maya::shim::cublas;
using maya::shim::cublaslt::Handle;
namespace session = maya::session;

namespace {
std::atomic<std::size_t> heuristics_capacity{8192};  // the documented default
}

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  session::Call call;
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  session::note_version("cublasLt", kVersionText);
  *handle = static_cast<cublasLtHandle_t>(session::make_handle<Handle>());
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  session::Call call;
  return session::drop_handle<Handle>(handle) ? CUBLAS_STATUS_SUCCESS
                                              : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char* cublasLtGetStatusName(cublasStatus_t status) { return status_text(status).name; }
const char* cublasLtGetStatusString(cublasStatus_t status) { return status_text(status).sentence; }
std::size_t cublasLtGetVersion() { return kVersion; }
std::size_t cublasLtGetCudartVersion() { return kCudartVersion; }
cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
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
cublasStatus_t cublasLtHeuristicsCacheGetCapacity(std::size_t* capacity) {
  if (!capacity) return CUBLAS_STATUS_INVALID_VALUE;
  *capacity = heuristics_capacity;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtHeuristicsCacheSetCapacity(std::size_t capacity) {
  heuristics_capacity = capacity;
  return CUBLAS_STATUS_SUCCESS;
}
unsigned cublasLtDisableCpuInstructionsSetMask(unsigned) { return 0; }

cublasStatus_t cublasLtLoggerSetCallback(void (*)(int, const char*, const char*)) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtLoggerSetFile(std::FILE*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerOpenFile(const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetLevel(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerForceDisable() { return CUBLAS_STATUS_SUCCESS; }

}  // extern "C"
