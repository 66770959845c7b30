// What a cublasHandle_t stands for. PyTorch hands the same handle to cuBLASLt.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/cublas.h"
#include "session/handles.h"

namespace maya::shim::cublas {

using namespace maya::abi;

struct Handle {
  static constexpr session::HandleKind kind = session::handle_kind("cublas");
  int pointer_mode{};
  int math_mode{};
  int atomics{};
  int sm_count_target{};
  int emulation_strategy{};
  int emulation_special_values{}, emulation_mantissa_control{}, emulation_max_bits{},
      emulation_bit_offset{};
  int* emulation_bit_count{};
  void* stream{};
  void* workspace{};
  std::size_t workspace_bytes{};
};

// nullptr for what is no living handle (cuBLAS answers NOT_INITIALIZED).
inline Handle* alive(cublasHandle_t handle) { return session::find_handle<Handle>(handle); }

inline cublasStatus_t status_of(int cuda_error) {
  switch (cuda_error) {
    case 0:
      return CUBLAS_STATUS_SUCCESS;
    case 1:
      return CUBLAS_STATUS_INVALID_VALUE;
    case 2:
      return CUBLAS_STATUS_ALLOC_FAILED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

// What every entry point that launches work starts with.
#define MAYA_CUBLAS_ENTER(handle)                \
  maya::session::Call maya_call;                 \
  auto* own = maya::shim::cublas::alive(handle); \
  if (!own) return maya::abi::CUBLAS_STATUS_NOT_INITIALIZED

}  // namespace maya::shim::cublas
