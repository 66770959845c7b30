// Contexts and devices of the driver. There is one primary context per device; created ones share
// its state.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "abi/cuda.h"
#include "session/handles.h"
#include "session/machine.h"
#include "session/session.h"

using namespace maya;
using namespace maya::abi;
using session::check_device;
using session::code::invalid_context;

namespace {

struct Context {
  static constexpr session::HandleKind kind = session::handle_kind("cuda context");
  int device{};
  std::uint64_t id{};
  bool is_primary{};
};

Context* find(CUcontext context) { return session::find_handle<Context>(context); }

CUcontext primary(int device) {
  static std::mutex mutex;
  static std::map<int, CUcontext> contexts;
  std::lock_guard guard(mutex);
  CUcontext& context = contexts[device];
  if (context == nullptr)
    context = static_cast<CUcontext>(
        session::make_handle<Context>(device, static_cast<std::uint64_t>(device) + 1, true));
  return context;
}

std::vector<CUcontext>& stack() {
  static thread_local std::vector<CUcontext> s;
  return s;
}

void make_current(CUcontext context) {
  if (const Context* own = find(context)) session::use_device(own->device);
}

CUcontext current() { return stack().empty() ? nullptr : stack().back(); }

}  // namespace

extern "C" {

int cuInit(unsigned flags) { return flags != 0 ? 1 : session::ready(); }

int cuDriverGetVersion(int* version) {
  if (version == nullptr) return 1;
  *version = session::driver_version;
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  if (int error = check_device(ordinal)) return error;
  if (device == nullptr) return 1;
  *device = ordinal;
  return 0;
}
int cuDeviceGetCount(int* count) {
  if (count == nullptr) return 1;
  int error = session::ready();
  *count = error == 0 ? session::device_count() : 0;
  return error == session::code::no_device ? 0 : error;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  if (int error = check_device(device)) return error;
  if (name == nullptr || bytes <= 0) return 1;
  std::snprintf(name, static_cast<size_t>(bytes), "%s", session::gpu().marketing.c_str());
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  if (int error = check_device(device)) return error;
  if (bytes == nullptr) return 1;
  *bytes = session::memory_total(device);
  return 0;
}
int cuDeviceGetUuid_v2(void* uuid, int device) {
  if (int error = check_device(device)) return error;
  if (uuid == nullptr) return 1;
  session::device_uuid(device, static_cast<unsigned char*>(uuid));
  return 0;
}
int cuDeviceGetUuid(void* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (int error = check_device(device)) return error;
  return value != nullptr && session::device_attribute(attribute, device, *value) ? 0 : 1;
}
int cuDeviceComputeCapability(int* major, int* minor, int device) {
  if (int error = check_device(device)) return error;
  if (major != nullptr) *major = session::gpu().capability_major;
  if (minor != nullptr) *minor = session::gpu().capability_minor;
  return 0;
}
int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  if (int error = check_device(device)) return error;
  if (int error = check_device(peer)) return error;
  if (can == nullptr) return 1;
  *can = device != peer;
  return 0;
}
int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  if (int error = check_device(device)) return error;
  if (int error = check_device(peer)) return error;
  if (value == nullptr) return 1;
  *value = attribute == 2 ? 1 : attribute == 1 ? 0 : session::gpu().nvlink_gbps > 0;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (int error = check_device(device)) return error;
  if (text == nullptr || bytes < 13) return 1;
  session::device_bus_id(device, text, static_cast<size_t>(bytes));
  return 0;
}
int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return pool == nullptr ? 1 : session::pool_of_device(device, true, *pool);
}
int cuDeviceGetMemPool(void** pool, int device) {
  return pool == nullptr ? 1 : session::pool_of_device(device, false, *pool);
}

int cuDevicePrimaryCtxRetain(CUcontext* context, int device) {
  if (int error = check_device(device)) return error;
  if (context == nullptr) return 1;
  *context = primary(device);
  return session::touch();
}
int cuDevicePrimaryCtxRelease_v2(int device) { return check_device(device); }
int cuDevicePrimaryCtxRelease(int device) { return check_device(device); }
int cuDevicePrimaryCtxReset_v2(int device) { return check_device(device); }
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) { return check_device(device); }
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (int error = check_device(device)) return error;
  if (flags != nullptr) *flags = 0;
  // Active on the device this thread works on, once the process has touched it.
  if (active != nullptr) *active = session::context_exists() && device == session::current_device();
  return 0;
}

int cuCtxCreate_v2(CUcontext* context, unsigned, int device) {
  if (int error = check_device(device)) return error;
  if (context == nullptr) return 1;
  static std::atomic<std::uint64_t> next{1000};  // behind those of the primary contexts
  *context = static_cast<CUcontext>(session::make_handle<Context>(device, next++, false));
  if (*context == nullptr) return session::code::out_of_memory;
  if (int error = session::touch()) return error;
  stack().push_back(*context);
  make_current(*context);
  return 0;
}
int cuCtxCreate_v3(CUcontext* context, void*, int, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}
int cuCtxCreate_v4(CUcontext* context, void*, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}
int cuCtxDestroy_v2(CUcontext context) {
  const Context* own = find(context);
  if (own == nullptr || own->is_primary) return invalid_context;
  std::erase(stack(), context);
  make_current(current());
  return session::drop_handle<Context>(context) ? 0 : invalid_context;
}
int cuCtxSetCurrent(CUcontext context) {
  if (int error = session::ready()) return error;
  if (context != nullptr && find(context) == nullptr) return invalid_context;
  if (!stack().empty()) stack().pop_back();
  if (context != nullptr) stack().push_back(context);
  make_current(context);
  return 0;
}
int cuCtxGetCurrent(CUcontext* context) {
  if (int error = session::ready()) return error;
  if (context == nullptr) return 1;
  // The runtime makes the primary context current when it is first used.
  *context = current() != nullptr        ? current()
             : session::context_exists() ? primary(session::current_device())
                                         : nullptr;
  return 0;
}
int cuCtxPushCurrent_v2(CUcontext context) {
  if (find(context) == nullptr) return invalid_context;
  stack().push_back(context);
  make_current(context);
  return 0;
}
int cuCtxPopCurrent_v2(CUcontext* context) {
  if (stack().empty()) return invalid_context;
  if (context != nullptr) *context = stack().back();
  stack().pop_back();
  make_current(current());
  return 0;
}
int cuCtxGetDevice(int* device) {
  if (int error = session::ready()) return error;
  if (device == nullptr) return 1;
  *device = session::current_device();
  return 0;
}
int cuCtxGetDevice_v2(int* device, CUcontext context) {
  if (context == nullptr) return cuCtxGetDevice(device);
  if (find(context) == nullptr) return invalid_context;
  if (device == nullptr) return 1;
  *device = find(context)->device;
  return 0;
}
int cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (id == nullptr) return 1;
  if (context != nullptr && find(context) == nullptr) return invalid_context;
  *id = context != nullptr ? find(context)->id
                           : static_cast<unsigned long long>(session::current_device()) + 1;
  return 0;
}
int cuCtxSynchronize() {
  session::Call call;
  return session::device_synchronize();
}
int cuCtxSynchronize_v2(CUcontext context) {
  return context != nullptr && find(context) == nullptr ? invalid_context : cuCtxSynchronize();
}
int cuCtxGetFlags(unsigned* flags) {
  if (flags == nullptr) return 1;
  *flags = 0;
  return session::ready();
}
int cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  if (context != nullptr && find(context) == nullptr) return invalid_context;
  if (version == nullptr) return 1;
  *version = 3020;
  return 0;
}
int cuCtxGetLimit(size_t* value, int limit) {
  if (value == nullptr) return 1;
  static const size_t defaults[] = {1024, 1048576, 8388608, 2, 2048, 64, 0};
  if (limit < 0 || limit > 6) return session::code::unsupported_limit;
  *value = defaults[limit];
  return session::ready();
}
int cuCtxSetLimit(int limit, size_t) {
  return limit < 0 || limit > 6 ? session::code::unsupported_limit : session::ready();
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return session::ready();
}
int cuCtxGetCacheConfig(int* config) {
  if (config == nullptr) return 1;
  *config = 0;
  return session::ready();
}
int cuCtxSetCacheConfig(int) { return session::ready(); }
int cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  return find(peer) == nullptr ? invalid_context : session::ready();
}
int cuCtxDisablePeerAccess(CUcontext peer) {
  return find(peer) == nullptr ? invalid_context : session::ready();
}

int cuStreamGetCtx(void* stream, CUcontext* context) {
  session::StreamProperties found;
  if (int error = session::stream_properties(stream, found)) return error;
  if (context == nullptr) return 1;
  *context = primary(found.device);
  return 0;
}
int cuStreamGetCtx_v2(void* stream, CUcontext* context, void** green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}

int cuGetErrorName(int error, const char** name) {
  const auto* entry = session::error_text(error);
  if (name == nullptr) return 1;
  *name = entry != nullptr ? entry->driver : nullptr;
  return entry != nullptr ? 0 : 1;
}
int cuGetErrorString(int error, const char** text) {
  const auto* entry = session::error_text(error);
  if (text == nullptr) return 1;
  *text = entry != nullptr ? entry->text : nullptr;
  return entry != nullptr ? 0 : 1;
}

int cuProfilerStart() { return 0; }
int cuProfilerStop() { return 0; }
int cuLogsRegisterCallback(void*, void*, void** handle) {
  static int registered;
  if (handle != nullptr) *handle = &registered;
  return 0;
}
int cuLogsUnregisterCallback(void*) { return 0; }

}  // extern "C"
