// Library context, versions and error texts.
#include "shim/cudnn/handle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace maya::abi;
using namespace maya::shim::cudnn;
namespace session = maya::session;

namespace {

thread_local char last_error[256];

// PyTorch refuses a library older than its headers and accepts any newer one of the same major, so
// the newest we know answers for all. MAYA_CUDNN_VERSION (as cudnnGetVersion would say, e.g. 91002)
// overrides it.
#if MAYA_CUDNN_MAJOR >= 9
constexpr int kNewest = 92600, kThousand = 10000, kCudart = 13020;
#else
constexpr int kNewest = 8902, kThousand = 1000, kCudart = 12010;
#endif

int version() {
  static const int value = [] {
    const char* text = std::getenv("MAYA_CUDNN_VERSION");
    int wanted = text ? std::atoi(text) : 0;
    return wanted / kThousand == kNewest / kThousand ? wanted : kNewest;
  }();
  return value;
}

}  // namespace

namespace maya::shim::cudnn {

cudnnStatus_t fail(cudnnStatus_t status, const char* why) {
  std::snprintf(last_error, sizeof last_error, "%s", why);
  return status;
}

}  // namespace maya::shim::cudnn

extern "C" {

std::size_t cudnnGetVersion() { return static_cast<std::size_t>(version()); }
std::size_t cudnnGetMaxDeviceVersion() { return 1210; }
std::size_t cudnnGetCudartVersion() { return kCudart; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  if (!value) return CUDNN_STATUS_BAD_PARAM;
  switch (type) {
    case MAJOR_VERSION:
      *value = version() / kThousand;
      return CUDNN_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = version() % kThousand / 100;
      return CUDNN_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = version() % 100;
      return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_BAD_PARAM;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return "CUDNN_STATUS_SUCCESS";
  if (status == CUDNN_STATUS_NOT_INITIALIZED) return "CUDNN_STATUS_NOT_INITIALIZED";
  if (status == CUDNN_STATUS_BAD_PARAM) return "CUDNN_STATUS_BAD_PARAM";
  if (status == CUDNN_STATUS_NOT_SUPPORTED) return "CUDNN_STATUS_NOT_SUPPORTED";
  if (status == CUDNN_STATUS_INTERNAL_ERROR) return "CUDNN_STATUS_INTERNAL_ERROR";
  if (status == CUDNN_STATUS_EXECUTION_FAILED) return "CUDNN_STATUS_EXECUTION_FAILED";
  if (status == CUDNN_STATUS_ALLOC_FAILED) return "CUDNN_STATUS_ALLOC_FAILED";
  if (status == CUDNN_STATUS9_BAD_PARAM_NULL_POINTER) return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
  if (status == CUDNN_STATUS9_BAD_PARAM_NOT_FINALIZED)
    return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
  return "CUDNN_STATUS_UNKNOWN";
}

void cudnnGetLastErrorString(char* message, std::size_t size) {
  if (message && size) std::snprintf(message, size, "%s", last_error);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  session::Call call;
  if (!handle) return fail(CUDNN_STATUS_BAD_PARAM, "cudnnCreate: handle is null");
  char text[32];
  std::snprintf(text, sizeof text, "%d.%d.%d", version() / kThousand, version() % kThousand / 100,
                version() % 100);
  session::note_version("cudnn", text);
  *handle = static_cast<cudnnHandle_t>(session::make_handle<Handle>());
  return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  session::Call call;
  return session::drop_handle<Handle>(handle)
             ? CUDNN_STATUS_SUCCESS
             : fail(CUDNN_STATUS_NOT_INITIALIZED, "handle is null or destroyed");
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream_st* stream) {
  Handle* own = alive(handle);
  if (!own) return fail(CUDNN_STATUS_NOT_INITIALIZED, "handle is null or destroyed");
  own->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, CUstream_st** stream) {
  Handle* own = alive(handle);
  if (!own || !stream)
    return fail(CUDNN_STATUS_BAD_PARAM, "cudnnGetStream: handle or stream is null");
  *stream = static_cast<CUstream_st*>(own->stream);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* status,
                                     cudnnErrQueryMode_t, void*) {
  if (!alive(handle) || !status) return CUDNN_STATUS_BAD_PARAM;
  *status = CUDNN_STATUS_SUCCESS;
  return CUDNN_STATUS_SUCCESS;
}

#if MAYA_CUDNN_MAJOR >= 9
cudnnStatus_t cudnnGraphVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck() { return CUDNN_STATUS_SUCCESS; }
#else
cudnnStatus_t cudnnOpsInferVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsTrainVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnInferVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnTrainVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvInferVersionCheck() { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvTrainVersionCheck() { return CUDNN_STATUS_SUCCESS; }
#endif

}  // extern "C"
