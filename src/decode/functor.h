// What an ATen elementwise functor does, read from its C++ type: function, operand types, the
// scalar it carries. "at::native::BinaryFunctor<float, float, bool, CompareEqFunctor<float>>" → eq,
// (f32, f32) → bool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decode/decode.h"
#include "decode/name.h"

namespace maya::decode {

struct Functor {
  std::string function;             // "add", "mul", "gelu", …: the ATen name without its suffixes
  std::vector<std::string> inputs;  // C++ types of the tensor operands
  std::string result;               // C++ type stored; guessed where the name does not say
  int flops{1};                     // per element
  // Where the functor keeps a scalar operand; size 0: none.
  int scalar_offset{}, scalar_size{};
  std::string scalar_type;
  bool scalar_first{};  // scalar ∘ x instead of x ∘ scalar
  bool compares{};      // a comparison whose operator is an int at operator_offset
  int operator_offset{-1};
};

// `inputs`: how many tensor operands the kernel passes; -1: not known.
Functor parse_functor(std::string_view type, int inputs = -1);

// A scalar as it lies in the functor; not a number for types nobody carries.
double scalar_value(const std::byte* p, DType type);

// A function by the name that values/functions knows it under.
std::string plain_name(const std::string& function);

// Multiply, add or special-function operations per element, from the function's name.
int flops_of(std::string_view function);

}  // namespace maya::decode
