// Modules loaded at run time through the runtime's library calls, and the way from runtime to
// driver.
#include <dlfcn.h>

#include "session/kernels.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;

namespace {

using ProcAddress = int (*)(const char*, void**, int, unsigned long long, int*);

cudaError entry_point(const char* name, void** function, unsigned version, unsigned long long flags,
                      int* status) {
  static auto find = reinterpret_cast<ProcAddress>(dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2"));
  if (name == nullptr || function == nullptr) return result(1);
  int answer = 1;
  *function = nullptr;
  if (find != nullptr) find(name, function, static_cast<int>(version), flags, &answer);
  if (status != nullptr) *status = answer;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                  int* status) {
  return entry_point(name, function, MAYA_CUDA_MAJOR >= 13 ? 13020 : 12090, flags, status);
}
cudaError cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                           unsigned long long flags, int* status) {
  return entry_point(name, function, version, flags, status);
}
cudaError cudaGetDriverEntryPoint_ptsz(const char* name, void** function, unsigned long long flags,
                                       int* status) {
  return cudaGetDriverEntryPoint(name, function, flags | cudaEnablePerThreadDefaultStream, status);
}
cudaError cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function, unsigned version,
                                                unsigned long long flags, int* status) {
  return entry_point(name, function, version, flags | cudaEnablePerThreadDefaultStream, status);
}

cudaError cudaLibraryLoadData(cudaLibrary_t* library, const void* data, void*, void**, unsigned,
                              void*, void**, unsigned) {
  session::Call call;
  void* module = nullptr;
  if (library == nullptr) return result(1);
  int error = session::module_load(module, data);
  if (error == 0) cudart::hand_out(library, module);
  return result(error);
}

cudaError cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, void*, void**, unsigned,
                                  void*, void**, unsigned) {
  session::Call call;
  void* module = nullptr;
  if (library == nullptr || path == nullptr) return result(1);
  int error = session::module_load_file(module, path);
  if (error == 0) cudart::hand_out(library, module);
  return result(error);
}

cudaError cudaLibraryUnload(cudaLibrary_t library) {
  session::Call call;
  return result(session::module_unload(library));
}

cudaError cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  session::Call call;
  if (kernel == nullptr) return result(session::code::invalid_handle);
  void* function = nullptr;
  int error = session::module_function(library, name, function);
  if (error == 0) cudart::hand_out(kernel, function);
  return result(error);
}

cudaError cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return result(count == nullptr ? session::code::invalid_handle
                                 : session::module_kernel_count(library, *count));
}

cudaError cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library,
                               const char* name) {
  session::Call call;
  if (name == nullptr) return result(session::code::invalid_handle);
  std::uint64_t found = 0, size = 0;
  int error = session::module_variable(library, name, found, size);
  if (error == 0 && address != nullptr) *address = reinterpret_cast<void*>(found);
  if (error == 0 && bytes != nullptr) *bytes = size;
  return result(error);
}
cudaError cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library,
                                const char* name) {
  return cudaLibraryGetGlobal(address, bytes, library, name);
}
cudaError cudaLibraryGetUnifiedFunction(void** function, cudaLibrary_t library, const char*) {
  if (!session::valid_module(library) || function == nullptr)
    return result(session::code::invalid_handle);
  return result(session::code::not_found);
}

}  // extern "C"
