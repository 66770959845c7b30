// CUPTI for torch.profiler (Kineto): activity records come from the live timeline (activity.h); the
// hardware counters (events, metrics) are refused as they are on every GPU since Turing.
#include <time.h>

#include <atomic>
#include <vector>

#include "abi/cupti.h"
#include "session/session.h"
#include "shim/cupti/activity.h"
#include "shim/cupti/functions.h"

using namespace maya::abi;
namespace session = maya::session;

namespace {

std::atomic<bool> subscribed{false};
int subscriber;
constexpr CUptiResult kNoCounters = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED;

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  if (!version) return CUPTI_ERROR_INVALID_PARAMETER;
#if MAYA_CUDA_MAJOR >= 13
  *version = 130200;
#else
  *version = 26;
#endif
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (!text) return CUPTI_ERROR_INVALID_PARAMETER;
  switch (result) {
    case CUPTI_SUCCESS:
      *text = "CUPTI_SUCCESS";
      break;
    case CUPTI_ERROR_INVALID_PARAMETER:
      *text = "CUPTI_ERROR_INVALID_PARAMETER";
      break;
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
      *text = "CUPTI_ERROR_MAX_LIMIT_REACHED";
      break;
    case CUPTI_ERROR_QUEUE_EMPTY:
      *text = "CUPTI_ERROR_QUEUE_EMPTY";
      break;
    case CUPTI_ERROR_NOT_SUPPORTED:
      *text = "CUPTI_ERROR_NOT_SUPPORTED";
      break;
    case CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED:
      *text = "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED";
      break;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
      break;
    default:
      *text = "CUPTI_ERROR_UNKNOWN";
      break;
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetErrorMessage(CUptiResult result, const char** text) {
  return cuptiGetResultString(result, text);
}
CUptiResult cuptiGetTimestamp(std::uint64_t* time) {
  if (!time) return CUPTI_ERROR_INVALID_PARAMETER;
  *time = maya::cupti::stamp_now();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetDeviceId(CUctx_st*, std::uint32_t* device) {
  if (!device) return CUPTI_ERROR_INVALID_PARAMETER;
  *device = static_cast<std::uint32_t>(session::current_device());
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(void** handle,
                           void (*)(void*, CUpti_CallbackDomain, std::uint32_t, const void*),
                           void*) {
  session::Call call;
  if (!handle) return CUPTI_ERROR_INVALID_PARAMETER;
  if (subscribed.exchange(true)) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  *handle = &subscriber;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(void* handle) {
  session::Call call;
  if (handle != &subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
  subscribed = false;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(std::uint32_t, void*, CUpti_CallbackDomain, std::uint32_t) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableDomain(std::uint32_t, void*, CUpti_CallbackDomain) { return CUPTI_SUCCESS; }
CUptiResult cuptiEnableAllDomains(std::uint32_t, void*) { return CUPTI_SUCCESS; }
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
  const char* known = nullptr;
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) known = maya::cupti::runtime_name(id);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) known = maya::cupti::driver_name(id);
  *name = known ? known : "";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiFinalize() {
  subscribed = false;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(void (*request)(std::uint8_t**, std::size_t*,
                                                           std::size_t*),
                                           void (*complete)(CUctx_st*, std::uint32_t, std::uint8_t*,
                                                            std::size_t, std::size_t)) {
  if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
  maya::cupti::set_buffers(request, complete);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(std::uint64_t (*callback)()) {
  maya::cupti::set_clock(callback);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  maya::cupti::enable(kind, true);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableContext(CUctx_st*, CUpti_ActivityKind kind) {
  return cuptiActivityEnable(kind);
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  maya::cupti::enable(kind, false);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnableLatencyTimestamps(std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableHWTrace(std::uint8_t) { return CUPTI_ERROR_NOT_SUPPORTED; }
CUptiResult cuptiActivityEnableDriverApi(std::uint32_t, std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnableRuntimeApi(std::uint32_t, std::uint8_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityFlushAll(std::uint32_t flags) {
  constexpr std::uint32_t forced = 1;
  maya::cupti::flush((flags & forced) != 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushPeriod(std::uint32_t) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t bytes,
                                       CUpti_Activity** record) {
  if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
  std::size_t offset = 0;  // of the next record
  if (*record != nullptr) {
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
    const auto last = reinterpret_cast<std::uintptr_t>(*record);
    if (last < begin || bytes < sizeof(CUpti_Activity) ||
        last - begin > bytes - sizeof(CUpti_Activity))
      return CUPTI_ERROR_INVALID_PARAMETER;
    const std::size_t size = maya::cupti::record_size((*record)->kind);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    offset = last - begin + size;
  }
  if (bytes < sizeof(CUpti_Activity) || offset > bytes - sizeof(CUpti_Activity))
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + offset);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUctx_st*, std::uint32_t, std::size_t* dropped) {
  if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords_v2(void*, CUctx_st*, std::uint32_t,
                                                 std::size_t* dropped) {
  return cuptiActivityGetNumDroppedRecords(nullptr, 0, dropped);
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, std::size_t* size, void* value) {
  return size && value ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiActivityPushExternalCorrelationId(int kind, std::uint64_t id) {
  maya::cupti::push_external(kind, id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(int kind, std::uint64_t* last) {
  return maya::cupti::pop_external(kind, last) ? CUPTI_SUCCESS : CUPTI_ERROR_QUEUE_EMPTY;
}

CUptiResult cuptiSetEventCollectionMode(CUctx_st*, int) { return kNoCounters; }
CUptiResult cuptiEventGetAttribute(std::uint32_t, int, std::size_t*, void*) { return kNoCounters; }
CUptiResult cuptiEventGetIdFromName(int, const char*, std::uint32_t*) { return kNoCounters; }
CUptiResult cuptiEventGroupGetAttribute(void*, int, std::size_t*, void*) { return kNoCounters; }
CUptiResult cuptiEventGroupSetAttribute(void*, int, std::size_t, void*) { return kNoCounters; }
CUptiResult cuptiEventGroupReadEvent(void*, int, std::uint32_t, std::size_t*, std::uint64_t*) {
  return kNoCounters;
}
CUptiResult cuptiEventGroupSetDisable(void*) { return kNoCounters; }
CUptiResult cuptiEventGroupSetEnable(void*) { return kNoCounters; }
CUptiResult cuptiEventGroupSetsCreate(CUctx_st*, std::size_t, std::uint32_t*, void**) {
  return kNoCounters;
}
CUptiResult cuptiEventGroupSetsDestroy(void*) { return kNoCounters; }
CUptiResult cuptiMetricEnumEvents(std::uint32_t, std::size_t*, std::uint32_t*) {
  return kNoCounters;
}
CUptiResult cuptiMetricGetAttribute(std::uint32_t, int, std::size_t*, void*) { return kNoCounters; }
CUptiResult cuptiMetricGetIdFromName(int, const char*, std::uint32_t*) { return kNoCounters; }
CUptiResult cuptiMetricGetNumEvents(std::uint32_t, std::uint32_t*) { return kNoCounters; }
CUptiResult cuptiMetricGetValue(int, std::uint32_t, std::size_t, std::uint32_t*, std::size_t,
                                std::uint64_t*, std::uint64_t, void*) {
  return kNoCounters;
}

}  // extern "C"
