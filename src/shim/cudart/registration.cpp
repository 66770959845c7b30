// Called by the program's own start-up code, once per fat binary and kernel: importing torch makes
// tens of thousands of these calls, so they only take notes.
#include "session/kernels.h"
#include "shim/cudart/result.h"

using namespace maya;
using namespace maya::abi;
using cudart::result;

namespace {
struct Configuration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local Configuration pushed[8];
thread_local unsigned depth = 0;
}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  return static_cast<void**>(session::register_binary(wrapper, MAYA_CUDA_MAJOR));
}

void __cudaRegisterFatBinaryEnd(void**) {}

// At exit; what was registered stays readable for late callers.
void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*) {
  session::register_function(handle, host, name);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int,
                       int) {
  session::register_variable(handle, host, name, bytes);
}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int,
                              size_t bytes, int, int) {
  session::register_variable(handle, host, name, bytes);
}

char __cudaInitModule(void**) { return 1; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  if (depth >= 8) return 1;
  pushed[depth++] = {grid, block, shared, stream};
  return 0;
}

cudaError __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (depth == 0) return result(session::code::missing_configuration);
  const auto& c = pushed[--depth];
  *grid = c.grid, *block = c.block, *shared = c.shared, *static_cast<void**>(stream) = c.stream;
  return cudaSuccess;
}

cudaError __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  void* function = session::registered_function(host);
  if (function == nullptr) return result(session::code::invalid_device_function);
  cudart::hand_out(kernel, function);
  return cudaSuccess;
}

}  // extern "C"
