#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;

namespace {

constexpr int invalid_device_function = 98;

cudaError launch(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  session::Call call;
  session::Function* function = session::registered_function(host);
  if (function == nullptr) [[unlikely]]
    return result(session::ready() ? session::ready() : invalid_device_function);
  Geometry geometry{{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<std::uint32_t>(shared), 0};
  return result(session::launch(*function, geometry, arguments, stream));
}

session::Function* resolved(const void* host, int& error) {
  session::Function* function = session::registered_function(host);
  error = session::touch();
  if (error == 0) error = function == nullptr ? invalid_device_function : session::resolve(*function);
  return error == 0 ? function : nullptr;
}

int set_attribute(session::Function& function, int attribute, int value) {
  const auto& gpu = session::gpu();
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || value + static_cast<std::int64_t>(function.code.static_shared) > gpu.shared_per_block_optin) return 1;
      function.max_dynamic_shared = value;
      return 0;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      function.carveout = value;
      return 0;
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
    case cudaFuncAttributeClusterDimMustBeSet:
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      return gpu.capability_major >= 9 ? 0 : 1;
    default:
      return 1;
  }
}

}  // namespace

extern "C" {

cudaError cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  return launch(function, grid, block, arguments, shared, stream);
}

cudaError cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  return launch(function, grid, block, arguments, shared, stream ? stream : cudaStreamPerThreadHandle());
}

cudaError cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  return launch(function, grid, block, arguments, shared, stream);
}

cudaError __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  return launch(kernel, grid, block, arguments, shared, stream);
}

cudaError __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, void* stream) {
  return launch(kernel, grid, block, arguments, shared, stream ? stream : cudaStreamPerThreadHandle());
}

cudaError cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  if (config == nullptr) return result(1);
  return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}

cudaError cudaLaunchHostFunc(void* stream, cudaHostFn_t function, void* data) {
  session::Call call;
  return result(session::stream_host_function(stream, function, data));
}

cudaError cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host) {
  session::Call call;
  int error = 0;
  session::Function* function = resolved(host, error);
  if (function == nullptr) return result(error);
  if (attributes == nullptr) return result(1);
  const auto& gpu = session::gpu();
  *attributes = {};
  attributes->sharedSizeBytes = function->code.static_shared;
  attributes->localSizeBytes = function->code.local_bytes;
  attributes->numRegs = function->code.registers;
  attributes->maxThreadsPerBlock = function->code.max_threads ? static_cast<int>(function->code.max_threads) : 1024;
  if (function->code.registers > 0)
    attributes->maxThreadsPerBlock =
        std::min(attributes->maxThreadsPerBlock, 65536 / ((function->code.registers + 7) / 8 * 8) / 32 * 32);
  attributes->ptxVersion = attributes->binaryVersion = gpu.capability_major * 10 + gpu.capability_minor;
  attributes->maxDynamicSharedSizeBytes = function->max_dynamic_shared
                                              ? function->max_dynamic_shared
                                              : std::max(0, 49152 - static_cast<int>(function->code.static_shared));
  attributes->preferredShmemCarveout = function->carveout;
  return cudaSuccess;
}

cudaError cudaFuncSetAttribute(const void* host, int attribute, int value) {
  session::Call call;
  int error = 0;
  session::Function* function = resolved(host, error);
  return result(function == nullptr ? error : set_attribute(*function, attribute, value));
}

cudaError cudaKernelSetAttributeForDevice(cudaKernel_t kernel, int attribute, int value, int) {
  return cudaFuncSetAttribute(kernel, attribute, value);
}

cudaError cudaFuncSetCacheConfig(const void* host, int) {
  int error = 0;
  resolved(host, error);
  return result(error);
}

cudaError cudaFuncGetName(const char** name, const void* host) {
  session::Function* function = session::registered_function(host);
  if (function == nullptr || name == nullptr) return result(invalid_device_function);
  *name = function->name.c_str();
  return cudaSuccess;
}

cudaError cudaGetFuncBySymbol(cudaFunction_t* to, const void* host) {
  session::Function* function = session::registered_function(host);
  if (function == nullptr) return result(invalid_device_function);
  cudart::hand_out(to, function);
  return cudaSuccess;
}

cudaError cudaGetKernel(cudaKernel_t* to, const void* host) {
  session::Function* function = session::registered_function(host);
  if (function == nullptr) return result(invalid_device_function);
  cudart::hand_out(to, function);
  return cudaSuccess;
}

cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host, int threads, size_t shared, unsigned) {
  session::Call call;
  int error = 0;
  session::Function* function = resolved(host, error);
  if (function == nullptr) return result(error);
  if (blocks == nullptr) return result(1);
  return result(session::occupancy(*function, threads, shared, *blocks));
}

cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared, 0);
}

cudaError cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* host, int blocks, int) {
  int error = 0;
  session::Function* function = resolved(host, error);
  if (function == nullptr) return result(error);
  if (bytes == nullptr || blocks <= 0) return result(1);
  const auto& gpu = session::gpu();
  std::int64_t per_block = std::min<std::int64_t>(gpu.shared_per_sm / blocks - 1024, gpu.shared_per_block_optin);
  *bytes = static_cast<size_t>(std::max<std::int64_t>(per_block - function->code.static_shared, 0));
  return cudaSuccess;
}

// Clusters of thread blocks: as many as their blocks fit on the multiprocessors.
cudaError cudaOccupancyMaxActiveClusters(int* clusters, const void* host, const cudaLaunchConfig_t* config) {
  session::Call call;
  int error = 0;
  session::Function* function = resolved(host, error);
  if (function == nullptr) return result(error);
  if (clusters == nullptr || config == nullptr) return result(1);
  int blocks = 0;
  dim3 b = config->blockDim;
  error = session::occupancy(*function, static_cast<int>(b.x * b.y * b.z), config->dynamicSmemBytes, blocks);
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto& d = config->attrs[i].val.clusterDim;
      size = std::max(1u, d.x * d.y * d.z);
    }
  *clusters = error == 0 ? blocks * session::gpu().sms / static_cast<int>(size) : 0;
  return result(error);
}

cudaError cudaOccupancyMaxPotentialClusterSize(int* size, const void* host, const cudaLaunchConfig_t*) {
  int error = 0;
  if (resolved(host, error) == nullptr) return result(error);
  if (size == nullptr) return result(1);
  *size = session::gpu().capability_major >= 9 ? 8 : 1;
  return cudaSuccess;
}

}  // extern "C"
