#include "abi/cupti_activity.h"
#include "session/kernels.h"
#include "session/observation.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;

namespace {

cudaError launch(const void* host, dim3 grid, dim3 block, void** arguments, size_t shared,
                 void* stream) {
  session::Call call;
  Geometry geometry{
      {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<std::uint32_t>(shared), 0};
  return result(session::launch_registered(host, geometry, arguments, stream));
}

// The function behind the host's stub; null: `error` says why there is none.
void* find(const void* host, int& error) {
  error = session::touch();
  if (error != 0) return nullptr;
  void* function = session::registered_function(host);
  if (function == nullptr) error = session::code::invalid_device_function;
  return function;
}

template <class Handle>
cudaError give_function(Handle* to, const void* host) {
  void* function = session::registered_function(host);
  if (function == nullptr) return result(session::code::invalid_device_function);
  cudart::hand_out(to, function);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                           size_t shared, void* stream) {
  return launch(function, grid, block, arguments, shared, stream);
}

cudaError cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                size_t shared, void* stream) {
  return launch(function, grid, block, arguments, shared,
                stream ? stream : cudaStreamPerThreadHandle());
}

cudaError cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                      size_t shared, void* stream) {
  const session::CalledAs as(session::CalledAs::Api::runtime, cbid_cudaLaunchCooperativeKernel);
  return launch(function, grid, block, arguments, shared, stream);
}

cudaError __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                             size_t shared, void* stream) {
  return launch(kernel, grid, block, arguments, shared, stream);
}

cudaError __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                  size_t shared, void* stream) {
  return launch(kernel, grid, block, arguments, shared,
                stream ? stream : cudaStreamPerThreadHandle());
}

cudaError cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                              void** arguments) {
  if (config == nullptr) return result(1);
  const session::CalledAs as(session::CalledAs::Api::runtime, cbid_cudaLaunchKernelExC);
  return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                config->stream);
}

cudaError cudaLaunchHostFunc(void* stream, cudaHostFn_t function, void* data) {
  session::Call call;
  return result(session::stream_host_function(stream, function, data));
}

cudaError cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host) {
  session::Call call;
  int error = 0;
  void* function = find(host, error);
  if (function == nullptr) return result(error);
  if (attributes == nullptr) return result(1);
  session::KernelAttributes known;
  if (error = session::kernel_attributes(function, known); error != 0) return result(error);
  *attributes = {};
  attributes->sharedSizeBytes = static_cast<size_t>(known.static_shared);
  attributes->localSizeBytes = static_cast<size_t>(known.local_bytes);
  attributes->numRegs = known.registers;
  attributes->maxThreadsPerBlock = known.max_threads;
  attributes->ptxVersion = known.ptx_version;
  attributes->binaryVersion = known.binary_version;
  attributes->maxDynamicSharedSizeBytes = known.max_dynamic_shared;
  attributes->preferredShmemCarveout = known.carveout;
  return cudaSuccess;
}

cudaError cudaFuncSetAttribute(const void* host, int attribute, int value) {
  session::Call call;
  int error = 0;
  void* function = find(host, error);
  return result(function == nullptr ? error
                                    : session::set_kernel_attribute(function, attribute, value));
}

cudaError cudaKernelSetAttributeForDevice(cudaKernel_t kernel, int attribute, int value, int) {
  return cudaFuncSetAttribute(kernel, attribute, value);
}

cudaError cudaFuncSetCacheConfig(const void* host, int) {
  session::KernelAttributes known;
  int error = 0;
  void* function = find(host, error);
  return result(function == nullptr ? error : session::kernel_attributes(function, known));
}

cudaError cudaFuncGetName(const char** name, const void* host) {
  void* function = session::registered_function(host);
  if (function == nullptr || name == nullptr) return result(session::code::invalid_device_function);
  *name = session::function_name(function);
  return cudaSuccess;
}

cudaError cudaGetFuncBySymbol(cudaFunction_t* to, const void* host) {
  return give_function(to, host);
}

cudaError cudaGetKernel(cudaKernel_t* to, const void* host) { return give_function(to, host); }

cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host,
                                                                 int threads, size_t shared,
                                                                 unsigned) {
  session::Call call;
  int error = 0;
  void* function = find(host, error);
  if (function == nullptr) return result(error);
  if (blocks == nullptr) return result(1);
  return result(session::occupancy(function, threads, shared, *blocks));
}

cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int threads,
                                                        size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, threads, shared, 0);
}

cudaError cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* host, int blocks,
                                                    int) {
  int error = 0;
  void* function = find(host, error);
  if (function == nullptr) return result(error);
  if (bytes == nullptr || blocks <= 0) return result(1);
  session::KernelAttributes known;
  if (error = session::kernel_attributes(function, known); error != 0) return result(error);
  const auto& gpu = session::gpu();
  std::int64_t per_block =
      std::min<std::int64_t>(gpu.shared_per_sm / blocks - 1024, gpu.shared_per_block_optin);
  *bytes = static_cast<size_t>(std::max<std::int64_t>(per_block - known.static_shared, 0));
  return cudaSuccess;
}

cudaError cudaOccupancyMaxActiveClusters(int* clusters, const void* host,
                                         const cudaLaunchConfig_t* config) {
  session::Call call;
  int error = 0;
  void* function = find(host, error);
  if (function == nullptr) return result(error);
  if (clusters == nullptr || config == nullptr) return result(1);
  dim3 b = config->blockDim;
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto& d = config->attrs[i].val.clusterDim;
      size = d.x * d.y * d.z;
    }
  return result(session::active_clusters(function, static_cast<int>(b.x * b.y * b.z),
                                         config->dynamicSmemBytes, size, *clusters));
}

cudaError cudaOccupancyMaxPotentialClusterSize(int* size, const void* host,
                                               const cudaLaunchConfig_t*) {
  int error = 0;
  if (find(host, error) == nullptr) return result(error);
  if (size == nullptr) return result(1);
  *size = session::largest_cluster();
  return cudaSuccess;
}

}  // extern "C"
