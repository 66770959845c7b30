#include "shim/nvrtc/source.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "shim/nvrtc/jiterator.h"
#include "shim/nvrtc/words.h"

namespace maya::shim::nvrtc {
namespace {

// Source with comments and string contents blanked, so that searching finds code only.
std::string code_of(std::string_view source) {
  std::string code(source);
  for (std::size_t i = 0; i < code.size();) {
    if (code.compare(i, 2, "//") == 0) {
      while (i < code.size() && code[i] != '\n') code[i++] = ' ';
    } else if (code.compare(i, 2, "/*") == 0) {
      std::size_t end = code.find("*/", i + 2);
      end = end == std::string::npos ? code.size() : end + 2;
      for (; i < end; ++i)
        if (code[i] != '\n') code[i] = ' ';
    } else if (code[i] == '"') {
      for (++i; i < code.size() && code[i] != '"' && code[i] != '\n'; ++i) {
        if (code[i] == '\\' && i + 1 < code.size()) code[i++] = ' ';
        code[i] = ' ';
      }
      ++i;
    } else {
      ++i;
    }
  }
  return code;
}

std::size_t skip_group(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return text.size();
}

// "const float* __restrict__ x" → "const float*", "Array<char*, 1+1> data" → "Array<char*, 1+1>".
std::string type_of(std::string_view parameter) {
  std::string text = trimmed(parameter.substr(0, parameter.find('=')));
  std::size_t begin = text.size();
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  if (begin > 0 && begin < text.size()) text = trimmed(text.substr(0, begin));
  for (std::string_view word : {"__restrict__", "__restrict", "const "})
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word))
      text.erase(at, word.size());
  return trimmed(text);
}

// The types between the parentheses at `open`.
std::vector<std::string> parameters_at(std::string_view code, std::size_t open) {
  std::vector<std::string> types;
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = open; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '(' || c == '<' || c == '[') ++depth;
    if (c == ')' || c == '>' || c == ']') --depth;
    if (depth > 1 || (c != ',' && depth != 0)) continue;
    if (std::string type = type_of(code.substr(begin, i - begin)); !type.empty())
      types.push_back(std::move(type));
    begin = i + 1;
    if (depth == 0) break;
  }
  return types;
}

// "<float, 1+1>" → 2: the sum behind the last comma, or the only argument.
int count_in(std::string_view type) {
  std::size_t at = type.find_last_of(",<");
  int sum = 0;
  while (at != std::string_view::npos && at + 1 < type.size()) {
    sum += std::atoi(std::string(type.substr(at + 1)).c_str());
    at = type.find('+', at + 1);
  }
  return sum;
}

}  // namespace

int bytes_of(std::string_view type) {
  if (type.ends_with("*")) return 8;
  struct Plain {
    std::string_view name;
    int bytes;
  };
  static constexpr Plain plain[] = {{"bool", 1},         {"char", 1},
                                    {"signed char", 1},  {"unsigned char", 1},
                                    {"int8_t", 1},       {"uint8_t", 1},
                                    {"short", 2},        {"unsigned short", 2},
                                    {"int16_t", 2},      {"uint16_t", 2},
                                    {"half", 2},         {"__half", 2},
                                    {"float16", 2},      {"__nv_bfloat16", 2},
                                    {"at::Half", 2},     {"at::BFloat16", 2},
                                    {"int", 4},          {"unsigned", 4},
                                    {"unsigned int", 4}, {"int32_t", 4},
                                    {"uint32_t", 4},     {"float", 4},
                                    {"long", 8},         {"unsigned long", 8},
                                    {"long long", 8},    {"unsigned long long", 8},
                                    {"int64_t", 8},      {"uint64_t", 8},
                                    {"size_t", 8},       {"ptrdiff_t", 8},
                                    {"double", 8}};
  for (const Plain& p : plain)
    if (p.name == type) return p.bytes;
  auto inside = [&](std::string_view head) {
    return bytes_of(
        trimmed(type.substr(head.size(), type.find_first_of(",>", head.size()) - head.size())));
  };
  // Of C++, of PyTorch's templates, of CuPy's.
  if (type.starts_with("std::complex<")) return 2 * inside("std::complex<");
  if (type.starts_with("complex<")) return 2 * inside("complex<");
  if (type.starts_with("Array<")) return inside("Array<") * count_in(type);
  if (type.starts_with("OffsetCalculator<")) return 4 + 25 * (12 + 4 * count_in(type));
  if (type.starts_with("LoadWithCast<")) return (count_in(type) + 3) / 4 * 4 + 4 * count_in(type);
  if (type.starts_with("StoreWithCast")) return 8;
  // { identity, configuration, calculators of input and output, pointers and flags }
  if (type == "ReduceJitOp") return 16 + 64 + (4 + 25 * 16) + (4 + 25 * 20) + 64;
  if (type.starts_with("CArray<")) {
    const std::size_t comma = type.find(',');
    const int dims = comma == std::string_view::npos
                         ? 0
                         : std::atoi(std::string(type.substr(comma + 1)).c_str());
    return 16 + 16 * dims;
  }
  return 0;
}

std::vector<Kernel> kernels(std::string_view source) {
  static constexpr std::string_view kGlobal = "__global__";
  std::string code = code_of(source);
  std::vector<Kernel> found;
  for (std::size_t at = code.find(kGlobal); at != std::string::npos; at = code.find(kGlobal, at)) {
    at += kGlobal.size();
    // The name is the word before the first parenthesis that is not an attribute's.
    std::size_t open = at;
    while ((open = code.find_first_of("(;{", open)) != std::string::npos && code[open] == '(') {
      std::size_t end = open;
      while (end > at && std::isspace(static_cast<unsigned char>(code[end - 1]))) --end;
      std::size_t begin = end;
      while (begin > at && is_word(code[begin - 1])) --begin;
      std::string word = code.substr(begin, end - begin);
      if (word == "__launch_bounds__" || word == "__attribute__" || word == "__cluster_dims__" ||
          word == "__maxnreg__" || word == "__block_size__") {
        open = skip_group(code, open);
        continue;
      }
      auto same = [&](const Kernel& kernel) { return kernel.name == word; };
      if (!word.empty() && std::none_of(found.begin(), found.end(), same)) {
        Kernel kernel{word, parameters_at(code, open), {}, straight_accesses(code, open)};
        kernel.stands_for = precompiled_twin(kernel, code, open);
        found.push_back(std::move(kernel));
      }
      break;
    }
  }
  return found;
}

std::string function_of(std::string_view expression) {
  expression = expression.substr(0, expression.find('<'));
  std::size_t end = expression.size();
  while (end > 0 && !is_word(expression[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_word(expression[begin - 1])) --begin;
  return std::string(expression.substr(begin, end - begin));
}

std::string symbol(std::string_view expression) {
  std::string name;
  for (char c : expression) {
    if (is_word(c))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name.empty() ? "kernel" : name;
}

std::string ptx(const std::vector<Kernel>& kernels, std::string_view target) {
  std::string text = "// maya-nvrtc\n.version 8.0\n.target ";
  text += target;
  text += "\n.address_size 64\n";
  for (const Kernel& kernel : kernels) {
    if (!kernel.stands_for.empty())
      text += "\n// " + kernel.name + " stands for " + kernel.stands_for;
    if (!kernel.touched.empty()) text += "\n// " + kernel.name + " touches ";
    for (const Touched& t : kernel.touched)
      text += std::to_string(t.parameter) + " " + std::to_string(t.reads) + " " +
              std::to_string(t.writes) + " " + t.type + ";";
    text += "\n.visible .entry " + kernel.name + "(";
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      const int bytes = bytes_of(kernel.parameters[i]);
      text += i == 0 ? "\n" : ",\n";
      // A structure of the source's own: its first byte is all that can be relied upon.
      if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
        text += "  .param .b" + std::to_string(8 * bytes) + " p" + std::to_string(i);
      else
        text += "  .param .align 8 .b8 p" + std::to_string(i) + "[" +
                std::to_string(std::max(bytes, 1)) + "]";
    }
    text += "\n)\n{\n  ret;\n}\n";
  }
  return text;
}

}  // namespace maya::shim::nvrtc
