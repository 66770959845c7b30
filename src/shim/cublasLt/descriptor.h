// The descriptors of cuBLASLt as we keep them in the caller's opaque memory.
//
// Callers built against older headers give less room (a matmul descriptor has 184 bytes there), so
// every structure keeps to the smallest size ever published.
#pragma once

#include <cstdint>

#include "abi/cublas.h"
#include "session/handles.h"
#include "session/host_memory.h"

namespace maya::shim::cublaslt {

struct Layout {
  static constexpr std::uint32_t kMagic = 0x4d4c'5401;
  std::uint32_t magic{kMagic};
  std::int32_t type{};
  std::uint64_t rows{}, cols{};  // of a grouped layout: device arrays, one entry a group
  std::int64_t ld{};
  std::int64_t batch_stride{}, plane_offset{};
  std::int32_t batch_count{1};
  std::int16_t order{};
  std::int16_t batch_mode{};
};
static_assert(sizeof(Layout) <= abi::kLtMatrixLayoutBytes);

inline constexpr int kBatchStrided = 0, kBatchPointers = 1, kBatchGrouped = 2;

struct MatmulDesc {
  static constexpr std::uint32_t kMagic = 0x4d4c'5402;
  std::uint32_t magic{kMagic};
  std::int32_t sm_count_target{};
  std::int16_t compute{}, scale{}, pointer_mode{}, transpose_a{}, transpose_b{}, transpose_c{},
      fill_mode{2}, epilogue{1};
  std::int16_t aux_type{-1}, bias_type{-1}, a_scale_mode{}, b_scale_mode{}, c_scale_mode{},
      d_scale_mode{}, aux_scale_mode{}, d_out_scale_mode{};
  std::int16_t chunks_rows{}, chunks_cols{}, fast_accum{}, unused{};
  std::int64_t bias_stride{}, aux_ld{}, aux_stride{}, alpha_stride{};
  std::uint64_t bias{}, aux{}, a_scale{}, b_scale{}, c_scale{}, d_scale{}, amax_d{}, aux_scale{},
      aux_amax{}, counters_in{}, counters_out{}, d_out_scale{}, emulation{};
};
static_assert(sizeof(MatmulDesc) <= abi::kLtMatmulDescBytes12);

struct Preference {
  static constexpr std::uint32_t kMagic = 0x4d4c'5403;
  std::uint32_t magic{kMagic};
  std::int32_t search_mode{};
  std::uint64_t max_workspace{};
  std::uint32_t reduction_mask{7};
  std::uint32_t align_a{256}, align_b{256}, align_c{256}, align_d{256};
  float max_waves{};
  std::uint64_t implementation_mask{~std::uint64_t{0}};
};
static_assert(sizeof(Preference) <= abi::kLtMatmulPreferenceBytes);

struct Transform {
  static constexpr std::uint32_t kMagic = 0x4d4c'5404;
  std::uint32_t magic{kMagic};
  std::int32_t scale{}, pointer_mode{}, transpose_a{}, transpose_b{};
};
static_assert(sizeof(Transform) <= abi::kLtMatrixTransformDescBytes);

struct Emulation {
  static constexpr std::uint32_t kMagic = 0x4d4c'5405;
  std::uint32_t magic{kMagic};
  std::int32_t strategy{}, special_values{0xffff}, mantissa_control{}, max_bits{}, bit_offset{};
  std::uint64_t bit_count{};
};

// What a descriptor stands for: made by …Create, or initialized by …Init in the caller's own
// memory. nullptr for anything else.
template <class T>
T* as(const void* opaque) {
  if (auto* made = static_cast<T*>(session::object_of(T::kMagic, opaque))) return made;
  if (!opaque || !session::mapped(opaque, sizeof(T))) return nullptr;
  auto* own = static_cast<T*>(const_cast<void*>(opaque));
  return own->magic == T::kMagic ? own : nullptr;
}

}  // namespace maya::shim::cublaslt
