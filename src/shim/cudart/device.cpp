#include <atomic>
#include <cstring>

#include "abi/cuda_device.h"
#include "session/machine.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;
using session::check_device;

namespace {

int attribute(int number, int device) {
  int value = 0;
  session::device_attribute(number, device, value);
  return value;
}

// Fields that both layouts have.
template <class Properties>
void fill(Properties& p, int device) {
  const auto& gpu = session::gpu();
  std::memset(static_cast<void*>(&p), 0, sizeof p);
  std::strncpy(p.name, gpu.marketing.c_str(), sizeof p.name - 1);
  session::device_uuid(device, reinterpret_cast<unsigned char*>(p.uuid.bytes));
  p.totalGlobalMem = static_cast<size_t>(gpu.memory_bytes);
  p.sharedMemPerBlock =
      static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device));
  p.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device);
  p.warpSize = 32;
  p.memPitch = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, device));
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024, p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647, p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.major = gpu.capability_major, p.minor = gpu.capability_minor;
  p.textureAlignment = 512, p.texturePitchAlignment = 32;
  p.multiProcessorCount = gpu.sms;
  p.canMapHostMemory = 1;
  p.maxTexture1D = 131072, p.maxTexture2D[0] = 131072, p.maxTexture2D[1] = 65536;
  p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = 16384;
  p.surfaceAlignment = 512;
  p.concurrentKernels = 1;
  p.ECCEnabled = attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, device);
  p.pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
  p.asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, device);
  p.unifiedAddressing = 1;
  p.memoryBusWidth = gpu.memory_bus_bits;
  p.l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  p.persistingL2CacheMaxSize = attribute(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, device);
  p.maxThreadsPerMultiProcessor = gpu.max_threads_per_sm;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = static_cast<size_t>(gpu.shared_per_sm);
  p.regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device);
  p.managedMemory = 1;
  p.multiGpuBoardGroupID = attribute(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, device);
  p.hostNativeAtomicSupported = attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, device);
  p.pageableMemoryAccess = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device);
  p.concurrentManagedAccess = p.computePreemptionSupported = p.canUseHostPointerForRegisteredMem =
      1;
  p.cooperativeLaunch = 1;
  p.sharedMemPerBlockOptin = static_cast<size_t>(gpu.shared_per_block_optin);
  p.maxBlocksPerMultiProcessor = gpu.max_blocks_per_sm;
  p.accessPolicyMaxWindowSize =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, device);
  p.reservedSharedMemPerBlock =
      static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, device));
  p.hostRegisterSupported = 1;
  p.memoryPoolsSupported = 1;
  p.gpuDirectRDMASupported = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, device);
  p.memoryPoolSupportedHandleTypes =
      static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, device));
  p.ipcEventSupported = 1;
  p.clusterLaunch = attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device);
  p.unifiedFunctionPointers = 1;
}

void fill_major(cudaDeviceProp12& p, int device) {
  p.clockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device);
  p.memoryClockRate = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device);
  p.singleToDoublePrecisionPerfRatio =
      attribute(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, device);
  p.deviceOverlap = 1;
  p.cooperativeMultiDeviceLaunch = 1;
}
[[maybe_unused]] void fill_major(cudaDeviceProp13& p, int) { p.deviceNumaId = -1; }

template <class Properties>
cudaError properties(Properties* p, int device) {
  session::Call call;
  if (int error = check_device(device)) return result(error);
  if (p == nullptr) return result(1);
  fill(*p, device);
  fill_major(*p, device);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError cudaGetDeviceCount(int* count) {
  if (count == nullptr) return result(1);
  int error = session::ready();
  *count = error == 0 ? session::device_count() : 0;
  return result(error);
}

cudaError cudaSetDevice(int device) {
  if (int error = check_device(device)) {
    session::note_missing_device(device);
    return result(error);
  }
  session::use_device(device);
  return cudaSuccess;
}

cudaError cudaGetDevice(int* device) {
  if (device == nullptr) return result(1);
  if (int error = session::ready()) return result(error);
  *device = session::current_device();
  return cudaSuccess;
}

cudaError cudaInitDevice(int device, unsigned, unsigned) { return result(check_device(device)); }

cudaError cudaGetDeviceProperties_v2(cudaDeviceProp12* p, int device) {
  return properties(p, device);
}
cudaError cudaGetDeviceProperties(cudaDeviceProp* p, int device) { return properties(p, device); }

cudaError cudaDeviceGetAttribute(int* value, int number, int device) {
  if (int error = check_device(device)) return result(error);
  if (value == nullptr || !session::device_attribute(number, device, *value)) return result(1);
  return cudaSuccess;
}

cudaError cudaDeviceSynchronize() {
  session::Call call;
  return result(session::device_synchronize());
}
cudaError cudaThreadSynchronize() { return cudaDeviceSynchronize(); }

cudaError cudaDeviceReset() {
  session::Call call;
  return result(session::ready());
}

cudaError cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (int error = session::ready()) return result(error);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (int error = check_device(device)) return result(error);
  if (int error = check_device(peer)) return result(error);
  if (can == nullptr) return result(1);
  *can = device != peer;
  return cudaSuccess;
}

cudaError cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (int error = check_device(peer)) return result(error);
  static std::atomic<std::uint64_t> enabled[64];
  if (peer == session::current_device() || peer >= 64) return result(session::code::invalid_device);
  std::uint64_t bit = std::uint64_t{1} << (session::current_device() & 63);
  return result(enabled[peer].fetch_or(bit) & bit ? session::code::peer_already_enabled : 0);
}
cudaError cudaDeviceDisablePeerAccess(int peer) { return result(check_device(peer)); }

cudaError cudaDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  if (int error = check_device(device)) return result(error);
  if (int error = check_device(peer)) return result(error);
  if (value == nullptr) return result(1);
  bool nvlink = session::gpu().nvlink_gbps > 0;
  *value = attribute == cudaDevP2PAttrAccessSupported   ? 1
           : attribute == cudaDevP2PAttrPerformanceRank ? 0
                                                        : nvlink;
  return cudaSuccess;
}

cudaError cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  if (int error = check_device(device)) return result(error);
  if (text == nullptr || bytes < 13) return result(1);
  session::device_bus_id(device, text, static_cast<size_t>(bytes));
  return cudaSuccess;
}

cudaError cudaDeviceGetByPCIBusId(int* device, const char* text) {
  if (int error = session::ready()) return result(error);
  if (device == nullptr || text == nullptr) return result(1);
  for (int i = 0; i < session::device_count(); ++i) {
    char own[16];
    session::device_bus_id(i, own, sizeof own);
    if (strcasecmp(own, text) == 0 || strcasecmp(own + 5, text) == 0)
      return *device = i, cudaSuccess;
  }
  return result(session::code::invalid_device);
}

cudaError cudaDeviceGetLimit(size_t* value, int limit) {
  if (int error = session::ready()) return result(error);
  if (value == nullptr) return result(1);
  static const size_t defaults[] = {1024, 1048576, 8388608, 2, 2048, 64, 0};
  if (limit < 0 || limit > 6) return result(session::code::unsupported_limit);
  *value = defaults[limit];
  return cudaSuccess;
}
cudaError cudaDeviceSetLimit(int limit, size_t) {
  return result(limit < 0 || limit > 6 ? session::code::unsupported_limit : session::ready());
}

cudaError cudaDeviceSetCacheConfig(int) { return result(session::ready()); }
cudaError cudaDeviceGetCacheConfig(int* config) {
  if (config == nullptr) return result(1);
  *config = 0;
  return result(session::ready());
}
cudaError cudaSetDeviceFlags(unsigned) { return result(session::ready()); }
cudaError cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return result(1);
  *flags = cudaDeviceMapHost;
  return result(session::ready());
}
cudaError cudaSetValidDevices(int*, int) { return result(session::ready()); }

cudaError cudaDriverGetVersion(int* version) {
  if (version == nullptr) return result(1);
  *version = session::driver_version;
  return cudaSuccess;
}

cudaError cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return result(1);
  *version = MAYA_CUDA_MAJOR >= 13 ? 13020 : 12090;
  return cudaSuccess;
}

cudaError cudaGetLastError() { return static_cast<cudaError>(session::last_error(true)); }
cudaError cudaPeekAtLastError() { return static_cast<cudaError>(session::last_error(false)); }

}  // extern "C"
