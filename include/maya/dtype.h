// Element types of tensors as kernels on the device use them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace maya {

enum class DType : std::uint8_t {
  unknown,
  f64,
  f32,
  tf32,  // f32 in memory, tensor-core rate in a GEMM or convolution
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  f4,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  c64,   // two f32
  c128,  // two f64
};

// Bits in memory; 0 for unknown.
int bits(DType type);
inline double bytes(DType type) { return bits(type) / 8.0; }
std::string_view name(DType type);
std::optional<DType> parse_dtype(
    std::string_view name);  // also "float32", "half", "fp16", "fp8", …

inline bool is_integer(DType t) {
  return t == DType::i64 || t == DType::i32 || t == DType::i16 || t == DType::i8 ||
         t == DType::u8 || t == DType::boolean;
}

}  // namespace maya
