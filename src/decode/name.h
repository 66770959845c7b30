// A demangled kernel name taken apart: qualified base, template arguments, parameter types.
// Tolerates names cut off in the middle (profilers cut) and names that no demangler reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "maya/dtype.h"

namespace maya::decode {

struct Name {
  std::string base;                     // "at::native::reduce_kernel", anonymous namespaces dropped
  std::string leaf;                     // "reduce_kernel"
  std::vector<std::string> templates;   // top-level template arguments of the leaf
  std::vector<std::string> parameters;  // parameter types
};

std::string demangle(const std::string& mangled);
Name parse_name(std::string_view demangled);

// "a, b<c, d>, e" → {"a", "b<c, d>", "e"}; brackets of every kind nest.
std::vector<std::string> split_arguments(std::string_view text);

// Element type of a C++ type as ATen, CUTLASS, Triton and friends spell it; unknown for the rest.
DType dtype_of(std::string_view type);
// The first element type named anywhere in `text` (a functor, a lambda's parameter list).
DType first_dtype(std::string_view text);
// ATen's ScalarType number, as LoadWithCast and friends carry it.
DType dtype_of_scalar_type(int scalar_type);
// Size in bytes also of types that DType does not name (u16, u32, u64, complex<Half>); 0: unknown.
int size_of(std::string_view type);

bool is_pointer(std::string_view type);
bool is_const_pointer(std::string_view type);
std::string_view pointee(std::string_view type);  // "float const*" → "float"
bool is_integer_scalar(std::string_view type);    // int, long, unsigned …

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline bool starts_with(std::string_view text, std::string_view part) {
  return text.substr(0, part.size()) == part;
}
inline bool ends_with(std::string_view text, std::string_view part) {
  return text.size() >= part.size() && text.substr(text.size() - part.size()) == part;
}
// Template argument `index` as a number; `otherwise` if it is none. Understands "4", "4ul", "true".
long template_number(const Name& name, std::size_t index, long otherwise = 0);
DType template_dtype(const Name& name, std::size_t index, DType otherwise = DType::unknown);

}  // namespace maya::decode
