// Modules loaded at run time through the runtime's library calls, and the way from runtime to
// driver.
#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;

namespace {

session::Module* module_of(void* library) { return session::modules().find(library); }

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
  session::Module* module = nullptr;
  if (library == nullptr) return result(1);
  int error = session::module_load(module, data);
  if (error == 0) cudart::hand_out(library, module);
  return result(error);
}

cudaError cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, void* a, void** b,
                                  unsigned c, void* d, void** e, unsigned f) {
  if (path == nullptr) return result(1);
  std::ifstream in(path, std::ios::binary);
  if (!in) return result(session::code::file_not_found);
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  bytes.push_back('\0');
  return cudaLibraryLoadData(library, bytes.data(), a, b, c, d, e, f);
}

cudaError cudaLibraryUnload(cudaLibrary_t library) {
  session::Call call;
  return result(session::module_unload(module_of(library)));
}

cudaError cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  session::Call call;
  session::Module* module = module_of(library);
  if (module == nullptr || kernel == nullptr) return result(400);
  session::Function* function = nullptr;
  int error = session::module_function(*module, name, function);
  if (error == 0) cudart::hand_out(kernel, function);
  return result(error);
}

cudaError cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  session::Module* module = module_of(library);
  if (module == nullptr || count == nullptr) return result(400);
  *count = static_cast<unsigned>(module->kernels.size());
  return cudaSuccess;
}

cudaError cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library,
                               const char* name) {
  session::Call call;
  session::Module* module = module_of(library);
  if (module == nullptr || name == nullptr) return result(400);
  std::uint64_t found = 0, size = 0;
  int error = session::module_variable(*module, name, 0, found, size);
  if (error == 0 && address != nullptr) *address = reinterpret_cast<void*>(found);
  if (error == 0 && bytes != nullptr) *bytes = size;
  return result(error);
}
cudaError cudaLibraryGetManaged(void** address, size_t* bytes, cudaLibrary_t library,
                                const char* name) {
  return cudaLibraryGetGlobal(address, bytes, library, name);
}
cudaError cudaLibraryGetUnifiedFunction(void** function, cudaLibrary_t library, const char*) {
  if (module_of(library) == nullptr || function == nullptr) return result(400);
  return result(session::code::not_found);
}

}  // extern "C"
