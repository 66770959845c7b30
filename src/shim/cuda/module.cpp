#include <string>
#include <vector>

#include "abi/cuda.h"
#include "abi/cupti_activity.h"
#include "session/handles.h"
#include "session/host_memory.h"
#include "session/kernels.h"
#include "session/observation.h"
#include "shim/cuda/packed.h"

using namespace maya;
using namespace maya::abi;

namespace {

int load(void** module, const void* data) {
  session::Call call;
  if (module == nullptr || data == nullptr) return 1;
  return session::module_load(*module, data);
}

int load_file(void** module, const char* path) {
  session::Call call;
  if (module == nullptr || path == nullptr) return 1;
  return session::module_load_file(*module, path);
}

int find_function(void** function, void* module, const char* name) {
  session::Call call;
  if (!session::valid_module(module)) return session::code::invalid_handle;
  if (function == nullptr || name == nullptr) return 1;
  return session::module_function(module, name, *function);
}

int find_variable(CUdeviceptr* address, size_t* bytes, void* module, const char* name) {
  session::Call call;
  std::uint64_t found = 0, size = 0;
  if (int error = session::module_variable(module, name, found, size)) return error;
  if (address != nullptr) *address = found;
  if (bytes != nullptr) *bytes = size;
  return 0;
}

int valid(void* function) {
  return session::valid_function(function) ? 0 : session::code::invalid_handle;
}

int get_attribute(int* value, int attribute, void* handle) {
  session::KernelAttributes known;
  if (!session::valid_function(handle)) return session::code::invalid_handle;
  if (value == nullptr) return 1;
  if (int error = session::kernel_attributes(handle, known)) return error;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = known.max_threads;
      return 0;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = known.static_shared;
      return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = known.local_bytes;
      return 0;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = known.registers;
      return 0;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = known.ptx_version;
      return 0;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = known.binary_version;
      return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = known.max_dynamic_shared;
      return 0;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = known.carveout;
      return 0;
    default:
      *value = 0;
      return attribute >= 0 && attribute <= 15 ? 0 : 1;
  }
}

constexpr size_t most_code = size_t{1} << 30;  // no kernel has a gigabyte of code

struct Link {
  static constexpr session::HandleKind kind = session::handle_kind("cuda link");
  std::vector<char> image;
};
Link* link_of(const void* state) { return session::find_handle<Link>(state); }

}  // namespace

extern "C" {

int cuModuleLoad(void** module, const char* path) { return load_file(module, path); }
int cuModuleLoadData(void** module, const void* data) { return load(module, data); }
int cuModuleLoadDataEx(void** module, const void* data, unsigned, void*, void**) {
  return load(module, data);
}
int cuModuleLoadFatBinary(void** module, const void* data) { return load(module, data); }
int cuModuleUnload(void* module) {
  session::Call call;
  return session::module_unload(module);
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return find_function(function, module, name);
}
int cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, void* module, const char* name) {
  return find_variable(address, bytes, module, name);
}
int cuModuleGetFunctionCount(unsigned* count, void* module) {
  return count == nullptr || session::module_kernel_count(module, *count) != 0 ? 1 : 0;
}
int cuModuleGetLoadingMode(int* mode) {
  if (mode == nullptr) return 1;
  *mode = 2;  // lazy
  return 0;
}

int cuLibraryLoadData(void** library, const void* data, void*, void**, unsigned, void*, void**,
                      unsigned) {
  return load(library, data);
}
int cuLibraryLoadFromFile(void** library, const char* path, void*, void**, unsigned, void*, void**,
                          unsigned) {
  return load_file(library, path);
}
int cuLibraryUnload(void* library) { return cuModuleUnload(library); }
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  return find_function(kernel, library, name);
}
int cuLibraryGetModule(void** module, void* library) {
  if (module == nullptr || !session::valid_module(library)) return 1;
  *module = library;
  return 0;
}
int cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, void* library, const char* name) {
  return find_variable(address, bytes, library, name);
}
int cuLibraryGetKernelCount(unsigned* count, void* library) {
  return cuModuleGetFunctionCount(count, library);
}
int cuKernelGetFunction(void** function, void* kernel) {
  if (function == nullptr || valid(kernel) != 0) return session::code::invalid_handle;
  *function = kernel;
  return 0;
}
int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return get_attribute(value, attribute, kernel);
}
int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  return session::set_kernel_attribute(kernel, attribute, value);
}
int cuKernelSetCacheConfig(void* kernel, int, int) { return valid(kernel); }
int cuKernelGetName(const char** name, void* kernel) {
  if (name == nullptr || !session::valid_function(kernel)) return 1;
  *name = session::function_name(kernel);
  return 0;
}
int cuFuncGetName(const char** name, void* function) { return cuKernelGetName(name, function); }
int cuFuncGetModule(void** module, void* handle) {
  if (module == nullptr || !session::valid_function(handle)) return 1;
  *module = session::function_module(handle);
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return get_attribute(value, attribute, function);
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return session::set_kernel_attribute(function, attribute, value);
}
int cuFuncSetCacheConfig(void* function, int) { return valid(function); }
int cuFuncSetSharedMemConfig(void* function, int) { return valid(function); }
int cuFuncLoad(void* function) { return valid(function); }
int cuFuncGetParamInfo(void* handle, size_t index, size_t* offset, size_t* bytes) {
  return session::function_parameter(handle, index, offset, bytes);
}
int cuKernelGetParamInfo(void* kernel, size_t index, size_t* offset, size_t* bytes) {
  return cuFuncGetParamInfo(kernel, index, offset, bytes);
}

// Linking: the last image given is the program; nothing executes, so nothing need be resolved.
int cuLinkCreate_v2(unsigned, void*, void**, void** state) {
  if (state == nullptr) return 1;
  *state = session::make_handle<Link>();
  return *state != nullptr ? 0 : 2;
}
int cuLinkAddData_v2(void* state, int, void* data, size_t bytes, const char*, unsigned, void*,
                     void**) {
  if (link_of(state) == nullptr) return session::code::invalid_handle;
  if (data == nullptr || bytes > most_code || session::is_device_pointer(data) ||
      !session::mapped(data, bytes))
    return 1;
  auto& image = link_of(state)->image;
  image.assign(static_cast<char*>(data), static_cast<char*>(data) + bytes);
  image.push_back('\0');
  return 0;
}
int cuLinkAddFile_v2(void* state, int, const char* path, unsigned, void*, void**) {
  if (link_of(state) == nullptr) return session::code::invalid_handle;
  if (path == nullptr) return 1;
  std::string bytes;
  if (!session::read_code_file(path, bytes)) return session::code::file_not_found;
  auto& image = link_of(state)->image;
  image.assign(bytes.begin(), bytes.end());
  image.push_back('\0');
  return 0;
}
int cuLinkComplete(void* state, void** cubin, size_t* bytes) {
  if (link_of(state) == nullptr) return session::code::invalid_handle;
  if (cubin == nullptr) return 1;
  auto& image = link_of(state)->image;
  *cubin = image.data();
  if (bytes != nullptr) *bytes = image.size();
  return image.empty() ? 1 : 0;
}
int cuLinkDestroy(void* state) {
  return session::drop_handle<Link>(state) ? 0 : session::code::invalid_handle;
}

int cuLaunchKernel(void* handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
  session::Call call;
  const session::CalledAs as(session::CalledAs::Api::driver, cbid_cuLaunchKernel);
  Geometry geometry{{gx, gy, gz}, {bx, by, bz}, shared, 0};
  if (extra != nullptr && arguments == nullptr)
    return session::launch(handle, geometry, shim::cuda::packed_arguments(extra), stream);
  return session::launch(handle, geometry, arguments, stream);
}
int cuLaunchKernel_ptsz(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, void* stream, void** arguments,
                        void** extra) {
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared,
                        stream ? stream : reinterpret_cast<void*>(2), arguments, extra);
}
int cuLaunchCooperativeKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, void* stream,
                              void** arguments) {
  const session::CalledAs as(session::CalledAs::Api::driver, cbid_cuLaunchCooperativeKernel);
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, nullptr);
}
int cuLaunchKernelEx(const CUlaunchConfig* c, void* function, void** arguments, void** extra) {
  if (c == nullptr) return 1;
  const session::CalledAs as(session::CalledAs::Api::driver, cbid_cuLaunchKernelEx);
  return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                        c->blockDimZ, c->sharedMemBytes, c->hStream, arguments, extra);
}
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  session::Call call;
  return session::stream_host_function(stream, function, data);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* handle, int threads,
                                                         size_t shared, unsigned) {
  if (int error = valid(handle)) return error;
  return blocks == nullptr ? 1 : session::occupancy(handle, threads, shared, *blocks);
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}
int cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, void* handle,
                                              CUoccupancyB2DSize size, size_t shared, int limit,
                                              unsigned) {
  if (int error = valid(handle)) return error;
  if (grid == nullptr || block == nullptr) return 1;
  int best = 0;
  *block = 32, *grid = 1;
  for (int threads = limit > 0 ? std::min(limit, 1024) : 1024; threads >= 32; threads -= 32) {
    int blocks = 0;
    if (int error =
            session::occupancy(handle, threads, size != nullptr ? size(threads) : shared, blocks))
      return error;
    if (blocks * threads > best)
      best = blocks * threads, *block = threads, *grid = blocks * session::gpu().sms;
  }
  return 0;
}
int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void* f, CUoccupancyB2DSize size,
                                     size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, f, size, shared, limit, 0);
}
int cuOccupancyMaxActiveClusters(int* clusters, void* handle, const CUlaunchConfig* c) {
  if (int error = valid(handle)) return error;
  if (clusters == nullptr || c == nullptr) return 1;
  unsigned size = 1;
  for (unsigned i = 0; i < c->numAttrs; ++i)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& d = c->attrs[i].value.clusterDim;
      size = d.x * d.y * d.z;
    }
  auto threads = static_cast<int>(c->blockDimX * c->blockDimY * c->blockDimZ);
  return session::active_clusters(handle, threads, c->sharedMemBytes, size, *clusters);
}

// A descriptor that only device code reads: any bytes will do, and nothing executes.
int cuTensorMapEncodeTiled(void* map, int, unsigned, void*, const void*, const void*, const void*,
                           const void*, int, int, int, int) {
  if (map == nullptr || reinterpret_cast<uintptr_t>(map) % 64 != 0) return 1;
  return session::gpu().capability_major >= 9 ? 0 : session::code::not_supported;
}
int cuTensorMapEncodeIm2col(void* map, int, unsigned, void*, const void*, const void*, const void*,
                            const void*, unsigned, unsigned, const void*, int, int, int, int) {
  if (map == nullptr) return 1;
  return session::gpu().capability_major >= 9 ? 0 : session::code::not_supported;
}
int cuTensorMapReplaceAddress(void* map, void*) { return map == nullptr ? 1 : 0; }

}  // extern "C"
