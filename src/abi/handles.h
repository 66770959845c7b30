// Handles shared by the CUDA runtime, the driver and every library on top of them.
//
// The runtime and the driver use the same objects under two names (cudaStream_t is CUstream), so
// the incomplete types live here once. All of src/abi is in namespace maya::abi: the optional
// header check can then put NVIDIA's own declarations beside ours. Every enum has a fixed
// underlying type, because a caller may pass any int.
#pragma once

#include <cstddef>
#include <cstdint>

namespace maya::abi {

struct CUctx_st;
struct CUmod_st;
struct CUlib_st;
struct CUfunc_st;
struct CUkern_st;
struct CUarray_st;
struct CUmipmappedArray_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUgraphDeviceUpdatableNode_st;
struct CUmemPoolHandle_st;
struct CUuserObject_st;
struct CUextMemory_st;
struct CUextSemaphore_st;
struct CUlinkState_st;
struct CUgreenCtx_st;
struct CUlogsCallbackEntry_st;
struct CUasyncCallbackEntry_st;

struct CUuuid_st {
  char bytes[16];
};
using CUuuid = CUuuid_st;

struct dim3 {
  unsigned int x;
  unsigned int y;
  unsigned int z;
};

// IEEE and brain halves cross the boundary as 16 opaque bits; the host side never computes with
// them.
struct half_bits {
  unsigned short bits;
};

struct float_complex {
  float x;
  float y;
};

struct double_complex {
  double x;
  double y;
};

// library_types.h of the toolkit: the element types that cuBLAS, cuSPARSE, cuSOLVER and cuFFT
// share.
enum cudaDataType_t : int {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_C_32F = 4,
  CUDA_C_64F = 5,
  CUDA_C_16F = 6,
  CUDA_C_8I = 7,
  CUDA_R_8U = 8,
  CUDA_C_8U = 9,
  CUDA_R_32I = 10,
  CUDA_C_32I = 11,
  CUDA_R_32U = 12,
  CUDA_C_32U = 13,
  CUDA_R_16BF = 14,
  CUDA_C_16BF = 15,
  CUDA_R_4I = 16,
  CUDA_C_4I = 17,
  CUDA_R_4U = 18,
  CUDA_C_4U = 19,
  CUDA_R_16I = 20,
  CUDA_C_16I = 21,
  CUDA_R_16U = 22,
  CUDA_C_16U = 23,
  CUDA_R_64I = 24,
  CUDA_C_64I = 25,
  CUDA_R_64U = 26,
  CUDA_C_64U = 27,
  CUDA_R_8F_E4M3 = 28,
  CUDA_R_8F_E5M2 = 29,
  CUDA_R_8F_UE8M0 = 30,
  CUDA_R_6F_E2M3 = 31,
  CUDA_R_6F_E3M2 = 32,
  CUDA_R_4F_E2M1 = 33,
};
using cudaDataType = cudaDataType_t;

enum libraryPropertyType_t : int { MAJOR_VERSION = 0, MINOR_VERSION = 1, PATCH_LEVEL = 2 };
using libraryPropertyType = libraryPropertyType_t;

}  // namespace maya::abi
