// cuGetProcAddress: how torch, Triton and the runtime reach the driver.
#include "abi/cuda.h"
#include "shim/cuda/entry_table.h"

using namespace maya::abi;

extern "C" {

// A name that is not there is not an error: the status says so and the pointer is null.
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version,
                             unsigned long long flags, CUdriverProcAddressQueryResult* status) {
  if (!symbol || !function || cuda_version <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto entry = maya::shim::cuda::find_entry(
      symbol, cuda_version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  *function = entry.address;
  if (status) {
    *status = entry.address ? CU_GET_PROC_ADDRESS_SUCCESS
              : entry.known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

// The form of CUDA 11.3, which had no status to report through.
CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version,
                          unsigned long long flags) {
  const CUresult result = cuGetProcAddress_v2(symbol, function, cuda_version, flags, nullptr);
  return result == CUDA_SUCCESS && !*function ? CUDA_ERROR_NOT_FOUND : result;
}

}  // extern "C"
