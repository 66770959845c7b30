#include "shim/nvrtc/source.h"

#include <algorithm>
#include <cctype>

namespace maya::shim::nvrtc {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

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

}  // namespace

std::vector<std::string> kernels(std::string_view source) {
  static constexpr std::string_view kGlobal = "__global__";
  std::string code = code_of(source);
  std::vector<std::string> names;
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
      if (!word.empty() && std::find(names.begin(), names.end(), word) == names.end())
        names.push_back(word);
      break;
    }
  }
  return names;
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

std::string ptx(const std::vector<std::string>& names, std::string_view target) {
  std::string text = "// maya-nvrtc\n.version 8.0\n.target ";
  text += target;
  text += "\n.address_size 64\n";
  for (const std::string& name : names)
    text += "\n.visible .entry " + name + "(\n)\n{\n  ret;\n}\n";
  return text;
}

}  // namespace maya::shim::nvrtc
