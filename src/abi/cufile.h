// cuFile (GPUDirect Storage). Its status is a pair returned by value.
#pragma once

#include "abi/handles.h"

namespace maya::abi {

using CUfileHandle_t = void*;

enum CUfileOpError : int {
  CU_FILE_SUCCESS = 0,
  CU_FILE_DRIVER_NOT_INITIALIZED = 5001,
  CU_FILE_DRIVER_UNSUPPORTED_LIMIT = 5003,
  CU_FILE_PLATFORM_NOT_SUPPORTED = 5007,
  CU_FILE_IO_NOT_SUPPORTED = 5008,
  CU_FILE_DEVICE_NOT_SUPPORTED = 5009,
  CU_FILE_CUDA_DRIVER_ERROR = 5011,
  CU_FILE_CUDA_POINTER_INVALID = 5012,
  CU_FILE_INVALID_VALUE = 5022,
};

struct CUfileError {
  CUfileOpError err;
  int cu_err;  // a CUresult
};
using CUfileError_t = CUfileError;
static_assert(sizeof(CUfileError) == 8);

enum CUfileFileHandleType : int {
  CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
  CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
  CU_FILE_HANDLE_TYPE_USERSPACE_FS = 3,
};

struct CUfileDescr_t {
  CUfileFileHandleType type;
  union {
    int fd;
    void* handle;
  } handle;
  const void* fs_ops;
};

}  // namespace maya::abi
