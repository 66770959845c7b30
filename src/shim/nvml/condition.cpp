// Memory, clocks, power, processes and modes of a device.
//
// In virtual time, what NVML measures (utilization, power, temperature, memory in use) is what the
// job did on the device in the last second, in any of its processes (clock/device_load.h). Without
// it these are the figures of an idle board. What NVML knows (clocks, limits) is the catalogue's.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "session/device_load.h"
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

// A monitor that uses NVML only has no context on the device.
std::uint64_t used_here(int index) {
  int own = visible(index);
  return own < 0 || !session::context_exists() ? 0 : session::memory_used(own);
}

// The processes that hold memory of a device, as far as they can be seen.
std::vector<session::DeviceUser> holders(int index) {
  std::vector<session::DeviceUser> all = session::device_users(index);
  std::erase_if(all, [](const auto& user) { return user.process == getpid(); });
  if (const std::uint64_t own = used_here(index)) all.insert(all.begin(), {getpid(), own});
  return all;
}

std::uint64_t used(int index) {
  std::uint64_t bytes = 0;
  for (const auto& user : holders(index)) bytes += user.bytes;
  return bytes;
}

// Idle: about a tenth of the limit.
double watts(const maya::clock::Load& load) {
  const double limit = session::gpu().tdp_watts, idle = limit / 10;
  return idle + (limit - idle) * load.power;
}
// Assumed: 30 °C when idle, 70 °C at the limit. Cooling is not modelled.
double temperature(const maya::clock::Load& load) { return 30 + 40 * load.power; }

unsigned percent(double share) { return static_cast<unsigned>(std::lround(100 * share)); }

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
  session::Call call;
  const int own = index_of(device);
  if (own < 0 || !value) return NVML_ERROR_INVALID_ARGUMENT;
  const maya::clock::Load load = session::device_load(own);
  *value = {percent(load.busy), percent(load.memory)};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t,
                                      unsigned* value) {
  session::Call call;
  return give(device, value, std::lround(temperature(session::device_load(index_of(device)))));
}
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t* value) {
  if (!value) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned celsius = 0;
  const auto result = nvmlDeviceGetTemperature(device, value->sensorType, &celsius);
  value->temperature = static_cast<int>(celsius);
  return result;
}
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned*) {
  return index_of(device) < 0 ? NVML_ERROR_INVALID_ARGUMENT
                              : NVML_ERROR_NOT_SUPPORTED;  // passively cooled
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  session::Call call;
  return give(device, milliwatts, watts(session::device_load(index_of(device))) * 1000);
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
  session::Call call;
  const double limit = session::gpu().tdp_watts, idle = limit / 10;
  const session::DeviceEnergy energy = session::device_energy(index_of(device));
  return give(device, millijoules,
              1e3 * (idle * energy.seconds + (limit - idle) * energy.full_power_seconds));
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  session::Call call;
  return give(device, mhz, clock_of(type, session::device_load(index_of(device)).busy > 0));
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
  session::Call call;
  constexpr unsigned idle = 1, power_cap = 4;
  const maya::clock::Load load = session::device_load(index_of(device));
  return give(device, reasons, load.busy == 0 ? idle : load.power > 0.98 ? power_cap : 0);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
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

// The processes of the job that hold memory on the device; without virtual time this one only.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* number,
                                                     nvmlProcessInfo_t* infos) {
  session::Call call;
  int own = index_of(device);
  if (own < 0 || !number) return NVML_ERROR_INVALID_ARGUMENT;
  const auto all = holders(own);
  const bool fits = *number >= all.size();
  *number = static_cast<unsigned>(all.size());
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (std::size_t i = 0; i < all.size() && infos; ++i)
    infos[i] = {static_cast<unsigned>(all[i].process), all[i].bytes, ~0u, ~0u};
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
  const auto all = holders(own);
  const bool fits = *number >= all.size();
  *number = static_cast<unsigned>(all.size());
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (std::size_t i = 0; i < all.size() && infos; ++i)
    infos[i] = {static_cast<unsigned>(all[i].process), all[i].bytes};
  return NVML_SUCCESS;
}
// How busy each of them keeps the device. Work is counted by device: several share it evenly.
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* samples,
                                             unsigned* number, unsigned long long) {
  session::Call call;
  int own = index_of(device);
  if (own < 0 || !number) return NVML_ERROR_INVALID_ARGUMENT;
  const auto all = holders(own);
  const bool fits = samples != nullptr && *number >= all.size();
  *number = static_cast<unsigned>(all.size());
  if (all.empty()) return NVML_ERROR_NOT_FOUND;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  const auto load = session::device_load(own);
  const auto sharing = static_cast<double>(all.size());
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  for (std::size_t i = 0; i < all.size(); ++i)
    samples[i] = {static_cast<unsigned>(all[i].process),
                  static_cast<unsigned long long>(now.tv_sec) * 1'000'000 +
                      static_cast<unsigned long long>(now.tv_nsec) / 1000,
                  percent(load.busy / sharing),
                  percent(load.memory / sharing),
                  0,
                  0};
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
