#include "maya/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace maya {
namespace {

struct Row {
  DType type;
  int bits;
  std::string_view name;
};

// In the order of the enum, so that the type is the index.
constexpr std::array<Row, 17> kTypes{{{DType::unknown, 0, "unknown"},
                                      {DType::f64, 64, "f64"},
                                      {DType::f32, 32, "f32"},
                                      {DType::tf32, 32, "tf32"},
                                      {DType::f16, 16, "f16"},
                                      {DType::bf16, 16, "bf16"},
                                      {DType::f8e4m3, 8, "f8e4m3"},
                                      {DType::f8e5m2, 8, "f8e5m2"},
                                      {DType::f4, 4, "f4"},
                                      {DType::i64, 64, "i64"},
                                      {DType::i32, 32, "i32"},
                                      {DType::i16, 16, "i16"},
                                      {DType::i8, 8, "i8"},
                                      {DType::u8, 8, "u8"},
                                      {DType::boolean, 8, "bool"},
                                      {DType::c64, 64, "c64"},
                                      {DType::c128, 128, "c128"}}};

constexpr bool ordered() {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  return true;
}
static_assert(ordered());

// What PyTorch, NumPy, C and data sheets call them.
constexpr std::array<std::pair<std::string_view, DType>, 39> kAliases{{
    {"float64", DType::f64},
    {"double", DType::f64},
    {"fp64", DType::f64},
    {"float32", DType::f32},
    {"float", DType::f32},
    {"fp32", DType::f32},
    {"tensorfloat32", DType::tf32},
    {"float16", DType::f16},
    {"half", DType::f16},
    {"fp16", DType::f16},
    {"bfloat16", DType::bf16},
    {"float8", DType::f8e4m3},
    {"fp8", DType::f8e4m3},
    {"f8", DType::f8e4m3},
    {"float8_e4m3fn", DType::f8e4m3},
    {"float8_e5m2", DType::f8e5m2},
    {"fp8_e4m3", DType::f8e4m3},
    {"fp8_e5m2", DType::f8e5m2},
    {"e4m3", DType::f8e4m3},
    {"e5m2", DType::f8e5m2},
    {"float4", DType::f4},
    {"fp4", DType::f4},
    {"nvfp4", DType::f4},
    {"int64", DType::i64},
    {"long", DType::i64},
    {"int32", DType::i32},
    {"int", DType::i32},
    {"int16", DType::i16},
    {"short", DType::i16},
    {"int8", DType::i8},
    {"char", DType::i8},
    {"uint8", DType::u8},
    {"byte", DType::u8},
    {"boolean", DType::boolean},
    {"complex64", DType::c64},
    {"cfloat", DType::c64},
    {"complex128", DType::c128},
    {"cdouble", DType::c128},
    {"float4_e2m1", DType::f4},
}};

}  // namespace

int bits(DType type) {
  auto i = static_cast<std::size_t>(type);
  return i < kTypes.size() ? kTypes[i].bits : 0;
}

std::string_view name(DType type) {
  auto i = static_cast<std::size_t>(type);
  return i < kTypes.size() ? kTypes[i].name : kTypes[0].name;
}

std::optional<DType> parse_dtype(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower.starts_with("torch.")) lower.erase(0, 6);
  for (const Row& row : kTypes)
    if (row.name == lower) return row.type;
  for (const auto& [alias, type] : kAliases)
    if (alias == lower) return type;
  return std::nullopt;
}

}  // namespace maya
