// The letters of CUDA C++ source.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace maya::shim::nvrtc {

inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
inline bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

inline std::string trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace maya::shim::nvrtc
