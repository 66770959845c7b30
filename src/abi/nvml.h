// NVML: device identity, memory, clocks, links and topology.
#pragma once

#include "abi/handles.h"

namespace maya::abi {

struct nvmlDevice_st;
using nvmlDevice_t = nvmlDevice_st*;

enum nvmlReturn_enum : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_IRQ_ISSUE = 11,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21,
  NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
  NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
  NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_NOT_READY = 27,
  NVML_ERROR_GPU_NOT_FOUND = 28,
  NVML_ERROR_INVALID_STATE = 29,
  NVML_ERROR_UNKNOWN = 999,
};
using nvmlReturn_t = nvmlReturn_enum;

struct nvmlMemory_st {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
using nvmlMemory_t = nvmlMemory_st;

struct nvmlMemory_v2_st {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
using nvmlMemory_v2_t = nvmlMemory_v2_st;

struct nvmlUtilization_st {
  unsigned int gpu;
  unsigned int memory;
};
using nvmlUtilization_t = nvmlUtilization_st;

struct nvmlPciInfo_st {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
};
using nvmlPciInfo_t = nvmlPciInfo_st;
static_assert(sizeof(nvmlPciInfo_t) == 68);

struct nvmlProcessInfo_v1_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
};
using nvmlProcessInfo_v1_t = nvmlProcessInfo_v1_st;

struct nvmlProcessInfo_st {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};
using nvmlProcessInfo_t = nvmlProcessInfo_st;

struct nvmlProcessUtilizationSample_st {
  unsigned int pid;
  unsigned long long timeStamp;  // microseconds
  unsigned int smUtil, memUtil, encUtil, decUtil;
};
using nvmlProcessUtilizationSample_t = nvmlProcessUtilizationSample_st;

struct nvmlDeviceAttributes_st {
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
  unsigned int gpuInstanceSliceCount;
  unsigned int computeInstanceSliceCount;
  unsigned long long memorySizeMB;
};
using nvmlDeviceAttributes_t = nvmlDeviceAttributes_st;

enum nvmlClockType_enum : int {
  NVML_CLOCK_GRAPHICS = 0,
  NVML_CLOCK_SM = 1,
  NVML_CLOCK_MEM = 2,
  NVML_CLOCK_VIDEO = 3,
};
using nvmlClockType_t = nvmlClockType_enum;

enum nvmlTemperatureSensors_enum : int { NVML_TEMPERATURE_GPU = 0 };
using nvmlTemperatureSensors_t = nvmlTemperatureSensors_enum;

struct nvmlTemperature_v1_t {
  unsigned int version;
  nvmlTemperatureSensors_t sensorType;
  int temperature;
};

enum nvmlEnableState_enum : int { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 };
using nvmlEnableState_t = nvmlEnableState_enum;

enum nvmlBrandType_enum : int {
  NVML_BRAND_UNKNOWN = 0,
  NVML_BRAND_QUADRO = 1,
  NVML_BRAND_TESLA = 2,
  NVML_BRAND_GEFORCE = 5,
  NVML_BRAND_TITAN = 6,
  NVML_BRAND_NVIDIA_RTX = 13,
  NVML_BRAND_NVIDIA = 14,
  NVML_BRAND_GEFORCE_RTX = 15,
};
using nvmlBrandType_t = nvmlBrandType_enum;

constexpr unsigned int NVML_DEVICE_ARCH_PASCAL = 4;
constexpr unsigned int NVML_DEVICE_ARCH_VOLTA = 5;
constexpr unsigned int NVML_DEVICE_ARCH_TURING = 6;
constexpr unsigned int NVML_DEVICE_ARCH_AMPERE = 7;
constexpr unsigned int NVML_DEVICE_ARCH_ADA = 8;
constexpr unsigned int NVML_DEVICE_ARCH_HOPPER = 9;
constexpr unsigned int NVML_DEVICE_ARCH_BLACKWELL = 10;

enum nvmlComputeMode_enum : int {
  NVML_COMPUTEMODE_DEFAULT = 0,
  NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
  NVML_COMPUTEMODE_PROHIBITED = 2,
  NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
};
using nvmlComputeMode_t = nvmlComputeMode_enum;

enum nvmlPStates_enum : int { NVML_PSTATE_0 = 0, NVML_PSTATE_UNKNOWN = 32 };
using nvmlPstates_t = nvmlPStates_enum;

// 18 up to CUDA 13.0, 36 from then on.
constexpr int kNvlinkMaxLinks = 36;

enum nvmlNvLinkCapability_enum : int {
  NVML_NVLINK_CAP_P2P_SUPPORTED = 0,
  NVML_NVLINK_CAP_SYSMEM_ACCESS = 1,
  NVML_NVLINK_CAP_P2P_ATOMICS = 2,
  NVML_NVLINK_CAP_SYSMEM_ATOMICS = 3,
  NVML_NVLINK_CAP_SLI_BRIDGE = 4,
  NVML_NVLINK_CAP_VALID = 5,
};
using nvmlNvLinkCapability_t = nvmlNvLinkCapability_enum;

enum nvmlIntNvLinkDeviceType_enum : int {
  NVML_NVLINK_DEVICE_TYPE_GPU = 0,
  NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1,
  NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
  NVML_NVLINK_DEVICE_TYPE_UNKNOWN = 255,
};
using nvmlIntNvLinkDeviceType_t = nvmlIntNvLinkDeviceType_enum;

enum nvmlGpuLevel_enum : int {
  NVML_TOPOLOGY_INTERNAL = 0,
  NVML_TOPOLOGY_SINGLE = 10,
  NVML_TOPOLOGY_MULTIPLE = 20,
  NVML_TOPOLOGY_HOSTBRIDGE = 30,
  NVML_TOPOLOGY_NODE = 40,
  NVML_TOPOLOGY_SYSTEM = 50,
};
using nvmlGpuTopologyLevel_t = nvmlGpuLevel_enum;

enum nvmlGpuP2PStatus_enum : int {
  NVML_P2P_STATUS_OK = 0,
  NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
  NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
  NVML_P2P_STATUS_NOT_SUPPORTED = 5,
  NVML_P2P_STATUS_UNKNOWN = 6,
};
using nvmlGpuP2PStatus_t = nvmlGpuP2PStatus_enum;

enum nvmlGpuP2PCapsIndex_enum : int {
  NVML_P2P_CAPS_INDEX_READ = 0,
  NVML_P2P_CAPS_INDEX_WRITE = 1,
  NVML_P2P_CAPS_INDEX_NVLINK = 2,
  NVML_P2P_CAPS_INDEX_ATOMICS = 3,
  NVML_P2P_CAPS_INDEX_UNKNOWN = 5,
};
using nvmlGpuP2PCapsIndex_t = nvmlGpuP2PCapsIndex_enum;

struct nvmlConfComputeSystemState_st {
  unsigned int environment, ccFeature, devToolsMode;
};

struct nvmlSystemConfComputeSettings_v1_t {
  unsigned int version;
  unsigned int environment, ccFeature, devToolsMode, multiGpuMode;
};

struct nvmlGpuFabricInfo_t {
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned int cliqueId;
  unsigned char state;
};

// The V form adds a version in front; its third revision a health summary at the end.
struct nvmlGpuFabricInfo_v2_t {
  unsigned int version;
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned int cliqueId;
  unsigned char state;
  unsigned int healthMask;
};

struct nvmlGpuFabricInfo_v3_t {
  unsigned int version;
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned int cliqueId;
  unsigned char state;
  unsigned int healthMask;
  unsigned char healthSummary;
};

constexpr unsigned int NVML_GPU_FABRIC_STATE_NOT_SUPPORTED = 0;
constexpr unsigned int NVML_GPU_FABRIC_STATE_COMPLETED = 3;

union nvmlValue_st {
  double dVal;
  int siVal;
  unsigned int uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
  unsigned short usVal;
};
using nvmlValue_t = nvmlValue_st;

enum nvmlValueType_enum : int {
  NVML_VALUE_TYPE_DOUBLE = 0,
  NVML_VALUE_TYPE_UNSIGNED_INT = 1,
  NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
  NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
  NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
  NVML_VALUE_TYPE_SIGNED_INT = 5,
  NVML_VALUE_TYPE_UNSIGNED_SHORT = 6,
};
using nvmlValueType_t = nvmlValueType_enum;

struct nvmlFieldValue_st {
  unsigned int fieldId;
  unsigned int scopeId;
  long long timestamp;
  long long latencyUsec;
  nvmlValueType_t valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};
using nvmlFieldValue_t = nvmlFieldValue_st;

}  // namespace maya::abi
