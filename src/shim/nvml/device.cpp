// Initialization, versions, enumeration and identity.
#include "shim/nvml/device.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "session/host_memory.h"
#include "shim/nvml/text.h"

namespace maya::shim::nvml {

std::string bus_id(int index) {
  char text[32];
  std::snprintf(text, sizeof text, "00000000:%02X:00.0", bus(index));
  return text;
}

std::string uuid(int index) {
  unsigned char bytes[16];
  session::device_uuid(0, bytes);  // the prefix; the last two bytes are the number within the job
  int number = index + session::place_in_job().node * count();
  bytes[14] = static_cast<unsigned char>(number >> 8),
  bytes[15] = static_cast<unsigned char>(number);
  char text[48];
  std::snprintf(
      text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
      bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8],
      bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]);
  return text;
}

}  // namespace maya::shim::nvml

using namespace maya::abi;
using namespace maya::shim::nvml;
namespace session = maya::session;

namespace {
std::atomic<int> users{0};

nvmlReturn_t start() {
  session::Call call;
  if (!session::machine_fault().empty()) return NVML_ERROR_DRIVER_NOT_LOADED;
  ++users;
  return NVML_SUCCESS;
}

nvmlReturn_t find(int index, nvmlDevice_t* device) {
  if (!device) return NVML_ERROR_INVALID_ARGUMENT;
  if (index < 0) return NVML_ERROR_NOT_FOUND;
  *device = handle(index);
  return NVML_SUCCESS;
}

int by_bus_id(const char* text) {
  // "domain:bus:device.function" or "bus:device.function", hexadecimal.
  unsigned domain = 0, number = 0, slot = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &number, &slot, &function) < 3) {
    domain = 0;
    if (std::sscanf(text, "%x:%x.%x", &number, &slot, &function) < 2) return -1;
  }
  for (int i = 0; i < count(); ++i)
    if (domain == 0 && slot == 0 && bus(i) == number) return i;
  return -1;
}
}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() { return start(); }
nvmlReturn_t nvmlInit() { return start(); }
nvmlReturn_t nvmlInitWithFlags(unsigned) { return start(); }
nvmlReturn_t nvmlShutdown() {
  session::Call call;
  if (users <= 0) return NVML_ERROR_UNINITIALIZED;
  --users;
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED:
      return "NVML was not first initialized with nvmlInit()";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "A supplied argument is invalid";
    case NVML_ERROR_NOT_SUPPORTED:
      return "The requested operation is not available on target device";
    case NVML_ERROR_NOT_FOUND:
      return "A query to find an object was unsuccessful";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "An input argument is not large enough";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "NVIDIA driver is not loaded";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Local version of NVML doesn't implement this function";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "The provided version is invalid/unsupported";
    default:
      return "An internal driver error occurred";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return give_text("595.45.04", text, size);
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char* text, unsigned size) {
  return give_text("13.595.45.04", text, size);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  if (!version) return NVML_ERROR_INVALID_ARGUMENT;
  *version = session::driver_version;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}
// Confidential computing is switched off: engines ask before they use pinned memory.
nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_st* state) {
  if (!maya::session::mapped(state, sizeof *state)) return NVML_ERROR_INVALID_ARGUMENT;
  *state = {};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_v1_t* settings) {
  if (!maya::session::mapped(settings, sizeof *settings)) return NVML_ERROR_INVALID_ARGUMENT;
  constexpr unsigned first = sizeof(nvmlSystemConfComputeSettings_v1_t) | 1u << 24;
  if (settings->version != first) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  *settings = {first, 0, 0, 0, 0};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* text, unsigned size) {
  char path[64], name[256] = {};
  std::snprintf(path, sizeof path, "/proc/%u/comm", pid);
  std::FILE* file = std::fopen(path, "r");
  if (!file) return NVML_ERROR_NOT_FOUND;
  if (!std::fgets(name, sizeof name, file)) name[0] = 0;
  std::fclose(file);
  name[std::strcspn(name, "\n")] = 0;
  return give_text(name, text, size);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* number) {
  session::Call call;
  if (!number) return NVML_ERROR_INVALID_ARGUMENT;
  if (users <= 0) return NVML_ERROR_UNINITIALIZED;
  *number = static_cast<unsigned>(count());
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount(unsigned* number) { return nvmlDeviceGetCount_v2(number); }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  session::Call call;
  if (users <= 0) return NVML_ERROR_UNINITIALIZED;
  if (!device || index >= static_cast<unsigned>(count())) return NVML_ERROR_INVALID_ARGUMENT;
  *device = handle(static_cast<int>(index));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* text, nvmlDevice_t* device) {
  session::Call call;
  if (!text) return NVML_ERROR_INVALID_ARGUMENT;
  return find(by_bus_id(text), device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* text, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* text, nvmlDevice_t* device) {
  session::Call call;
  if (!text) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count(); ++i)
    if (uuid(i) == text) return find(i, device);
  return NVML_ERROR_NOT_FOUND;
}
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char*, nvmlDevice_t*) {
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  int own = index_of(device);
  if (own < 0 || !index) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned>(own);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* text, unsigned size) {
  if (index_of(device) < 0) return NVML_ERROR_INVALID_ARGUMENT;
  return give_text(session::gpu().marketing, text, size);
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* text, unsigned size) {
  int own = index_of(device);
  if (own < 0) return NVML_ERROR_INVALID_ARGUMENT;
  return give_text(uuid(own), text, size);
}
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* text, unsigned size) {
  int own = index_of(device);
  if (own < 0) return NVML_ERROR_INVALID_ARGUMENT;
  return give_text(std::to_string(1650000000000LL + own), text, size);
}
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned* id) {
  int own = index_of(device);
  if (own < 0 || !id) return NVML_ERROR_INVALID_ARGUMENT;
  *id = bus(own) << 8;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* info) {
  int own = index_of(device);
  if (own < 0 || !info) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  info->bus = bus(own);
  std::snprintf(info->busId, sizeof info->busId, "%s", bus_id(own).c_str());
  std::snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:%02X:00.0", bus(own) & 0xffu);
  info->pciDeviceId = 0x10de;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* info) {
  return nvmlDeviceGetPciInfo_v3(device, info);
}
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* info) {
  return nvmlDeviceGetPciInfo_v3(device, info);
}

}  // extern "C"
