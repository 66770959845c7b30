// Element types of the math libraries (cudaDataType) as the ops' DType, and what arithmetic a GPU
// does them with.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "abi/handles.h"
#include "maya/dtype.h"
#include "session/session.h"

namespace maya::shim {

// DType::unknown for a type no op speaks of (complex integers and the like).
inline DType dtype_of(int cuda_type) {
  switch (cuda_type) {
    case abi::CUDA_R_32F:
      return DType::f32;
    case abi::CUDA_R_64F:
      return DType::f64;
    case abi::CUDA_R_16F:
      return DType::f16;
    case abi::CUDA_R_16BF:
      return DType::bf16;
    case abi::CUDA_C_32F:
      return DType::c64;
    case abi::CUDA_C_64F:
      return DType::c128;
    case abi::CUDA_C_16F:
    case abi::CUDA_C_16BF:
      return DType::f32;  // two halves: the size is what counts
    case abi::CUDA_R_8I:
      return DType::i8;
    case abi::CUDA_R_8U:
      return DType::u8;
    case abi::CUDA_C_8I:
    case abi::CUDA_C_8U:
    case abi::CUDA_R_16I:
    case abi::CUDA_R_16U:
      return DType::i16;
    case abi::CUDA_R_32I:
    case abi::CUDA_R_32U:
      return DType::i32;
    case abi::CUDA_R_64I:
    case abi::CUDA_R_64U:
      return DType::i64;
    case abi::CUDA_R_8F_E4M3:
      return DType::f8e4m3;
    case abi::CUDA_R_8F_E5M2:
      return DType::f8e5m2;
    case abi::CUDA_R_8F_UE8M0:
      return DType::u8;
    case abi::CUDA_R_4F_E2M1:
      return DType::f4;
    default:
      return DType::unknown;
  }
}

// Bits of one element, here so that a shim needs nothing but the session at run time.
inline std::int64_t bits_of(DType type) {
  switch (type) {
    case DType::c128:
      return 128;
    case DType::f64:
    case DType::i64:
    case DType::c64:
      return 64;
    case DType::f32:
    case DType::tf32:
    case DType::i32:
      return 32;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
      return 16;
    case DType::f4:
      return 4;
    case DType::unknown:
      return 0;
    default:
      return 8;
  }
}
inline std::int64_t bytes_of(DType type, std::int64_t elements) {
  return elements * bits_of(type) / 8;
}

inline bool is_f8(DType type) { return type == DType::f8e4m3 || type == DType::f8e5m2; }
inline bool is_complex(DType type) { return type == DType::c64 || type == DType::c128; }

// Compute capability of the current device as 10 · major + minor.
inline int capability() {
  const auto& gpu = session::gpu();
  return gpu.capability_major * 10 + gpu.capability_minor;
}

// NVIDIA_TF32_OVERRIDE, which every NVIDIA math library obeys: 0 never, 1 always, unset -1.
inline int tf32_override() {
  static const int value = [] {
    const char* text = std::getenv("NVIDIA_TF32_OVERRIDE");
    return text && *text ? (*text == '0' ? 0 : 1) : -1;
  }();
  return value;
}

// The arithmetic a matrix product of `input` elements is done with on the current GPU.
// `tf32`: the library was allowed to round f32 inputs.
inline DType rate_class(DType input, bool tf32) {
  int cc = capability();
  switch (input) {
    case DType::f32:
    case DType::c64: {
      int force = tf32_override();
      bool on = force < 0 ? tf32 : force == 1;
      return on && cc >= 80 ? DType::tf32 : DType::f32;
    }
    case DType::c128:
    case DType::f64:
      return DType::f64;
    case DType::f16:
      return cc >= 60 ? DType::f16 : DType::f32;
    case DType::bf16:
      return cc >= 80 ? DType::bf16 : DType::f32;  // converted and done in f32 before Ampere
    case DType::u8:
      return DType::i8;
    default:
      return input;
  }
}

}  // namespace maya::shim
