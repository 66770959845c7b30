// Activity records of CUPTI, as far as tracing clients read them. Newer versions of a record have
// further fields behind these, which read as zero: each record is as large as the largest version.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cupti.h"

namespace maya::abi {

struct alignas(8) CUpti_ActivityAPI {
  CUpti_ActivityKind kind;
  uint32_t cbid;
  uint64_t start, end;
  uint32_t processId, threadId, correlationId, returnValue;
};
static_assert(sizeof(CUpti_ActivityAPI) == 40);

struct alignas(8) CUpti_ActivityKernel {  // 4 to 11
  CUpti_ActivityKind kind;
  uint8_t cacheConfig, sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested, partitionedGlobalCacheExecuted;
  uint64_t start, end, completed;
  uint32_t deviceId, contextId, streamId;
  int32_t gridX, gridY, gridZ, blockX, blockY, blockZ;
  int32_t staticSharedMemory, dynamicSharedMemory;
  uint32_t localMemoryPerThread, localMemoryTotal, correlationId;
  int64_t gridId;
  const char* name;
  void* reserved0;
  uint64_t queued, submitted;
  uint8_t launchType, isSharedMemoryCarveoutRequested, sharedMemoryCarveoutRequested, padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t shmemLimitConfig, graphId;
  void* pAccessPolicyWindow;
  uint32_t channelID, channelType, clusterX, clusterY, clusterZ, clusterSchedulingPolicy;
  uint64_t localMemoryTotal_v2;
  uint8_t later[120];
};
static_assert(offsetof(CUpti_ActivityKernel, correlationId) == 92);
static_assert(offsetof(CUpti_ActivityKernel, name) == 104);
static_assert(offsetof(CUpti_ActivityKernel, graphNodeId) == 144);
static_assert(offsetof(CUpti_ActivityKernel, localMemoryTotal_v2) == 192);

struct alignas(8) CUpti_ActivityMemcpy {  // up to 6
  CUpti_ActivityKind kind;
  uint8_t copyKind, srcKind, dstKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId, runtimeCorrelationId, pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId, channelID, channelType, pad2;
  uint8_t later[40];
};
static_assert(offsetof(CUpti_ActivityMemcpy, graphNodeId) == 64);

struct alignas(8) CUpti_ActivityMemset {  // up to 4
  CUpti_ActivityKind kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId;
  uint16_t flags, memoryKind;
  uint32_t pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId, channelID, channelType, pad2;
  uint8_t later[40];
};
static_assert(offsetof(CUpti_ActivityMemset, graphNodeId) == 64);

struct alignas(8) CUpti_ActivityExternalCorrelation {
  CUpti_ActivityKind kind;
  CUpti_ExternalCorrelationKind externalKind;
  uint64_t externalId;
  uint32_t correlationId, reserved;
};
static_assert(sizeof(CUpti_ActivityExternalCorrelation) == 24);

struct alignas(8) CUpti_ActivitySynchronization {  // up to 2
  CUpti_ActivityKind kind;
  uint32_t type;  // 1 event, 2 stream waits for event, 3 stream, 4 context
  uint64_t start, end;
  uint32_t correlationId, contextId, streamId, cudaEventId;
  uint64_t cudaEventSyncId;
  uint8_t later[16];
};
static_assert(offsetof(CUpti_ActivitySynchronization, cudaEventSyncId) == 40);

struct alignas(8) CUpti_ActivityCudaEvent {  // up to 2
  CUpti_ActivityKind kind;
  uint32_t correlationId, contextId, streamId, eventId, pad, deviceId, pad2;
  void* reserved0;
  uint64_t deviceTimestamp, cudaEventSyncId;
};
static_assert(offsetof(CUpti_ActivityCudaEvent, deviceTimestamp) == 40);

struct alignas(8) CUpti_ActivityGraphTrace {  // up to 2
  CUpti_ActivityKind kind;
  uint32_t correlationId;
  uint64_t start, end;
  uint32_t deviceId, graphId, contextId, streamId;
  void* reserved;
  uint32_t endDeviceId, endContextId;
};
static_assert(sizeof(CUpti_ActivityGraphTrace) == 56);

enum CUpti_ActivityMemcpyKind : uint8_t {
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOH = 9,
  CUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 10,
};
enum CUpti_ActivityMemoryKind : uint8_t {
  CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE = 1,
  CUPTI_ACTIVITY_MEMORY_KIND_PINNED = 2,
  CUPTI_ACTIVITY_MEMORY_KIND_DEVICE = 3,
};

// Numbers of runtime functions, of those that calls are shown as.
enum CUpti_runtime_cbid : uint32_t {
  cbid_cudaMalloc = 20,
  cbid_cudaFree = 22,
  cbid_cudaMemcpyAsync = 41,
  cbid_cudaMemsetAsync = 51,
  cbid_cudaStreamSynchronize = 131,
  cbid_cudaEventRecord = 135,
  cbid_cudaEventSynchronize = 137,
  cbid_cudaStreamWaitEvent = 147,
  cbid_cudaDeviceSynchronize = 165,
  cbid_cudaLaunchKernel = 211,
  cbid_cudaLaunchCooperativeKernel = 269,
  cbid_cudaLaunchHostFunc = 284,
  cbid_cudaGraphLaunch = 311,
  cbid_cudaLaunchKernelExC = 430,
};

// … and of driver functions.
enum CUpti_driver_cbid : uint32_t {
  cbid_cuLaunchKernel = 307,
  cbid_cuLaunchCooperativeKernel = 477,
  cbid_cuGraphLaunch = 514,
  cbid_cuLaunchKernelEx = 652,
};

}  // namespace maya::abi
