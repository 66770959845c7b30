// Memory, clocks, power, processes and modes of a device.
//
// A GPU nothing has run on is idle: what NVML measures (utilization, temperature, power) are the
// figures of an idle board, what it knows (memory, clocks, limits) comes from the catalogue and
// from this process's allocations.
#include <unistd.h>

#include <algorithm>

#include "shim/nvml/device.h"

using namespace maya::abi;
using namespace maya::shim::nvml;
namespace session = maya::session;

namespace {

// One unsigned answer about a valid device.
template <class T, class V>
nvmlReturn_t give(nvmlDevice_t device, T* to, V value) {
  if (index_of(device) < 0 || !to) return NVML_ERROR_INVALID_ARGUMENT;
  *to = static_cast<T>(value);
  return NVML_SUCCESS;
}

std::uint64_t used(int index) {
  int own = visible(index);
  return own < 0 ? 0 : session::memory_used(own);
}

unsigned architecture() {
  switch (session::gpu().capability_major * 10 + session::gpu().capability_minor) {
    case 60:
    case 61:
    case 62:
      return NVML_DEVICE_ARCH_PASCAL;
    case 70:
    case 72:
      return NVML_DEVICE_ARCH_VOLTA;
    case 75:
      return NVML_DEVICE_ARCH_TURING;
    case 80:
    case 86:
    case 87:
      return NVML_DEVICE_ARCH_AMPERE;
    case 89:
      return NVML_DEVICE_ARCH_ADA;
    case 90:
      return NVML_DEVICE_ARCH_HOPPER;
    default:
      return NVML_DEVICE_ARCH_BLACKWELL;
  }
}

// FP32 lanes of a streaming multiprocessor, from the architecture whitepapers.
int cores_per_sm() {
  switch (session::gpu().capability_major * 10 + session::gpu().capability_minor) {
    case 60:
    case 70:
    case 72:
    case 75:
    case 80:
      return 64;
    default:
      return 128;
  }
}

// PCIe generation whose 16 lanes carry the catalogue's rate (GB/s one way: gen 3 15.75, 4 31.5, 5
// 63, 6 121).
unsigned pcie_generation() {
  double rate = session::gpu().pcie_gbps;
  return rate > 70 ? 6 : rate > 35 ? 5 : rate > 18 ? 4 : 3;
}

bool geforce() { return session::gpu().marketing.find("GeForce") != std::string::npos; }

double clock_of(int type, bool maximum) {
  const auto& gpu = session::gpu();
  if (type == NVML_CLOCK_MEM) return gpu.memory_clock_mhz;
  return maximum ? gpu.boost_clock_mhz : gpu.base_clock_mhz;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  session::Call call;
  int own = index_of(device);
  if (own < 0 || !memory) return NVML_ERROR_INVALID_ARGUMENT;
  memory->total = static_cast<unsigned long long>(session::gpu().memory_bytes);
  memory->used = std::min<unsigned long long>(used(own), memory->total);
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlMemory_t plain;
  nvmlReturn_t result = nvmlDeviceGetMemoryInfo(device, &plain);
  if (result != NVML_SUCCESS) return result;
  memory->total = plain.total, memory->used = plain.used, memory->free = plain.free,
  memory->reserved = 0;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  int own = index_of(device);
  if (own < 0 || !memory) return NVML_ERROR_INVALID_ARGUMENT;
  *memory = {static_cast<unsigned long long>(session::gpu().memory_bytes),
             static_cast<unsigned long long>(session::gpu().memory_bytes), 0};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  if (index_of(device) < 0 || !major || !minor) return NVML_ERROR_INVALID_ARGUMENT;
  *major = session::gpu().capability_major, *minor = session::gpu().capability_minor;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned* value) {
  return give(device, value, architecture());
}
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t* value) {
  return give(device, value, geforce() ? NVML_BRAND_GEFORCE : NVML_BRAND_NVIDIA);
}
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned* value) {
  return give(device, value, session::gpu().sms * cores_per_sm());
}
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned* value) {
  return give(device, value, session::gpu().memory_bus_bits);
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* value) {
  if (index_of(device) < 0 || !value) return NVML_ERROR_INVALID_ARGUMENT;
  *value = {};
  value->multiprocessorCount = static_cast<unsigned>(session::gpu().sms);
  value->sharedCopyEngineCount = static_cast<unsigned>(session::gpu().copy_engines);
  value->memorySizeMB = static_cast<unsigned long long>(session::gpu().memory_bytes >> 20);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* value) {
  if (index_of(device) < 0 || !value) return NVML_ERROR_INVALID_ARGUMENT;
  *value = {0, 0};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t,
                                      unsigned* value) {
  return give(device, value, 30);
}
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned*) {
  return index_of(device) < 0 ? NVML_ERROR_INVALID_ARGUMENT
                              : NVML_ERROR_NOT_SUPPORTED;  // passively cooled
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  return give(device, milliwatts,
              session::gpu().tdp_watts * 1000 / 10);  // idle: about a tenth of the limit
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return give(device, milliwatts, session::gpu().tdp_watts * 1000);
}
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long* millijoules) {
  return give(device, millijoules, 0);
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  return give(device, mhz, clock_of(type, false));
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  return give(device, mhz, clock_of(type, true));
}
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                            unsigned* mhz) {
  return give(device, mhz, clock_of(type, true));
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long* reasons) {
  return give(device, reasons, 1);  // idle
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons) {
  return give(device, reasons, 1);
}
nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* value) {
  return give(device, value, NVML_PSTATE_0);
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* value) {
  return give(device, value, NVML_FEATURE_ENABLED);
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* value) {
  return give(device, value, NVML_COMPUTEMODE_DEFAULT);
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current,
                                  nvmlEnableState_t* pending) {
  if (index_of(device) < 0 || !current || !pending) return NVML_ERROR_INVALID_ARGUMENT;
  if (geforce()) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = session::gpu().ecc ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int, int, unsigned long long* value) {
  return give(device, value, 0);
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  if (index_of(device) < 0 || !current || !pending) return NVML_ERROR_INVALID_ARGUMENT;
  if (session::gpu().capability_major < 8 || geforce()) return NVML_ERROR_NOT_SUPPORTED;
  *current = *pending = 0;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* value) {
  return give(device, value, 0);
}
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* value) {
  return give(device, value, 0);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* value) {
  return give(device, value, pcie_generation());
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* value) {
  return give(device, value, pcie_generation());
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* value) {
  return give(device, value, 16);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned* value) {
  return give(device, value, 16);
}
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int, unsigned* value) {
  return give(device, value, 0);
}

// This process, when it holds memory on the device.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* number,
                                                     nvmlProcessInfo_t* infos) {
  session::Call call;
  int own = index_of(device);
  if (own < 0 || !number) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned present = used(own) ? 1 : 0;
  if (*number < present) {
    *number = present;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *number = present;
  if (present && infos) infos[0] = {static_cast<unsigned>(::getpid()), used(own), ~0u, ~0u};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* number,
                                                     nvmlProcessInfo_t* infos) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, number, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* number,
                                                  nvmlProcessInfo_v1_t* infos) {
  session::Call call;
  int own = index_of(device);
  if (own < 0 || !number) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned present = used(own) ? 1 : 0;
  bool fits = *number >= present;
  *number = present;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (present && infos) infos[0] = {static_cast<unsigned>(::getpid()), used(own)};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* number,
                                                      nvmlProcessInfo_t*) {
  return give(device, number, 0);
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned size, unsigned long* set) {
  if (index_of(device) < 0 || !set || size == 0) return NVML_ERROR_INVALID_ARGUMENT;
  std::fill(set, set + size, 0ul);
  long cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  for (long cpu = 0; cpu < cpus && cpu < static_cast<long>(size) * 64; ++cpu)
    set[cpu / 64] |= 1ul << (cpu % 64);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned size,
                                                 unsigned long* set, unsigned) {
  return nvmlDeviceGetCpuAffinity(device, size, set);
}
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned size, unsigned long* set,
                                         unsigned) {
  if (index_of(device) < 0 || !set || size == 0) return NVML_ERROR_INVALID_ARGUMENT;
  std::fill(set, set + size, 0ul);
  set[0] = 1;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int number, nvmlFieldValue_st* values) {
  if (index_of(device) < 0 || number < 0 || (number && !values)) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < number; ++i) values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  return NVML_SUCCESS;
}

}  // extern "C"
