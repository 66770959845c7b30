#include <fstream>
#include <iterator>
#include <vector>

#include "abi/cuda.h"
#include "session/calls.h"
#include "session/handles.h"
#include "session/host_memory.h"
#include "shim/cuda/packed.h"

using namespace maya;
using namespace maya::abi;

namespace {

session::Module* module_of(void* handle) { return session::modules().find(handle); }
session::Function* function_of(void* handle) { return session::state().functions.find(handle); }

int load(void** module, const void* data) {
  session::Call call;
  if (module == nullptr || data == nullptr) return 1;
  session::Module* made = nullptr;
  int error = session::module_load(made, data);
  if (error == 0) *module = made;
  return error;
}

int load_file(void** module, const char* path) {
  if (path == nullptr) return 1;
  std::ifstream in(path, std::ios::binary);
  if (!in) return session::code::file_not_found;
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  bytes.push_back('\0');
  return load(module, bytes.data());
}

int find_function(void** function, void* module, const char* name) {
  session::Call call;
  session::Module* from = module_of(module);
  if (from == nullptr) return session::code::invalid_handle;
  if (function == nullptr || name == nullptr) return 1;
  session::Function* found = nullptr;
  int error = session::module_function(*from, name, found);
  if (error == 0) *function = found;
  return error;
}

int find_variable(CUdeviceptr* address, size_t* bytes, void* module, const char* name) {
  session::Call call;
  session::Module* from = module_of(module);
  if (from == nullptr) return session::code::invalid_handle;
  if (name == nullptr) return 1;
  std::uint64_t found = 0, size = 0;
  int error = session::module_variable(*from, name, 0, found, size);
  if (error != 0) return error;
  if (address != nullptr) *address = found;
  if (bytes != nullptr) *bytes = size;
  return 0;
}

int get_attribute(int* value, int attribute, void* handle) {
  session::Function* function = function_of(handle);
  if (function == nullptr) return session::code::invalid_handle;
  if (value == nullptr) return 1;
  if (int error = session::resolve(*function)) return error;
  auto known = session::kernel_attributes(*function);
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

int set_attribute(void* handle, int attribute, int value) {
  session::Function* function = function_of(handle);
  if (function == nullptr) return session::code::invalid_handle;
  if (int error = session::resolve(*function)) return error;
  return session::set_kernel_attribute(*function, attribute, value);
}

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
  return session::module_unload(static_cast<session::Module*>(module));
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return find_function(function, module, name);
}
int cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, void* module, const char* name) {
  return find_variable(address, bytes, module, name);
}
int cuModuleGetFunctionCount(unsigned* count, void* module) {
  session::Module* from = module_of(module);
  if (from == nullptr || count == nullptr) return 1;
  *count = static_cast<unsigned>(from->kernels.size());
  return 0;
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
  if (module == nullptr || module_of(library) == nullptr) return 1;
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
  if (function == nullptr || function_of(kernel) == nullptr) return session::code::invalid_handle;
  *function = kernel;
  return 0;
}
int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return get_attribute(value, attribute, kernel);
}
int cuKernelSetAttribute(int attribute, int value, void* kernel, int) {
  return set_attribute(kernel, attribute, value);
}
int cuKernelSetCacheConfig(void* kernel, int, int) {
  return function_of(kernel) ? 0 : session::code::invalid_handle;
}
int cuKernelGetName(const char** name, void* kernel) {
  session::Function* function = function_of(kernel);
  if (function == nullptr || name == nullptr) return 1;
  *name = function->name.c_str();
  return 0;
}
int cuFuncGetName(const char** name, void* function) { return cuKernelGetName(name, function); }
int cuFuncGetModule(void** module, void* handle) {
  session::Function* function = function_of(handle);
  if (function == nullptr || module == nullptr) return 1;
  *module = function->module;
  return 0;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return get_attribute(value, attribute, function);
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return set_attribute(function, attribute, value);
}
int cuFuncSetCacheConfig(void* function, int) {
  return function_of(function) ? 0 : session::code::invalid_handle;
}
int cuFuncSetSharedMemConfig(void* function, int) {
  return function_of(function) ? 0 : session::code::invalid_handle;
}
int cuFuncLoad(void* function) { return function_of(function) ? 0 : session::code::invalid_handle; }
int cuFuncGetParamInfo(void* handle, size_t index, size_t* offset, size_t* bytes) {
  session::Function* function = function_of(handle);
  if (function == nullptr) return session::code::invalid_handle;
  if (int error = session::resolve(*function)) return error;
  if (index >= function->code.parameter_offsets.size()) return 1;
  if (offset != nullptr) *offset = function->code.parameter_offsets[index];
  if (bytes != nullptr) *bytes = function->code.parameter_sizes[index];
  return 0;
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
  // No kernel has a gigabyte of code.
  if (data == nullptr || bytes > device::any_room / 4 || session::is_device_pointer(data) ||
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
  std::ifstream in(path, std::ios::binary);
  if (!in) return session::code::file_not_found;
  auto& image = link_of(state)->image;
  image.assign((std::istreambuf_iterator<char>(in)), {});
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
  session::Function* function = function_of(handle);
  if (function == nullptr) return session::code::invalid_handle;
  Geometry geometry{{gx, gy, gz}, {bx, by, bz}, shared, 0};
  if (extra != nullptr && arguments == nullptr) {
    auto packed = shim::cuda::packed_arguments(extra);
    return session::launch_packed(*function, geometry, packed.buffer, packed.bytes, stream);
  }
  return session::launch(*function, geometry, arguments, stream);
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
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, nullptr);
}
int cuLaunchKernelEx(const CUlaunchConfig* c, void* function, void** arguments, void** extra) {
  if (c == nullptr) return 1;
  return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                        c->blockDimZ, c->sharedMemBytes, c->hStream, arguments, extra);
}
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  session::Call call;
  return session::stream_host_function(stream, function, data);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* handle, int threads,
                                                         size_t shared, unsigned) {
  session::Function* function = function_of(handle);
  if (function == nullptr) return session::code::invalid_handle;
  return blocks == nullptr ? 1 : session::occupancy(*function, threads, shared, *blocks);
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                size_t shared) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}
int cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, void* handle,
                                              CUoccupancyB2DSize size, size_t shared, int limit,
                                              unsigned) {
  session::Function* function = function_of(handle);
  if (function == nullptr) return session::code::invalid_handle;
  if (grid == nullptr || block == nullptr) return 1;
  int best = 0;
  *block = 32, *grid = 1;
  for (int threads = limit > 0 ? std::min(limit, 1024) : 1024; threads >= 32; threads -= 32) {
    int blocks = 0;
    if (int error = session::occupancy(*function, threads, size != nullptr ? size(threads) : shared,
                                       blocks))
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
  session::Function* function = function_of(handle);
  if (function == nullptr) return session::code::invalid_handle;
  if (clusters == nullptr || c == nullptr) return 1;
  unsigned size = 1;
  for (unsigned i = 0; i < c->numAttrs; ++i)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& d = c->attrs[i].value.clusterDim;
      size = d.x * d.y * d.z;
    }
  auto threads = static_cast<int>(c->blockDimX * c->blockDimY * c->blockDimZ);
  return session::active_clusters(*function, threads, c->sharedMemBytes, size, *clusters);
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
