#include "decode/name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace maya::decode {
namespace {

constexpr std::string_view anonymous = "(anonymous namespace)";

std::string without_anonymous(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '(' && starts_with(text.substr(i), anonymous)) {
      i += anonymous.size();
      if (starts_with(text.substr(i), "::")) i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool opens(char c) { return c == '<' || c == '(' || c == '{' || c == '['; }
bool closes(char c) { return c == '>' || c == ')' || c == '}' || c == ']'; }

// "_ZN7cutlass7Kernel2I…": the nested name in front of the first template argument list. Used where
// the demangler gives up (very long CUTLASS names).
std::string nested_name(std::string_view mangled) {
  std::string out;
  std::size_t i = 2;
  if (mangled.size() > 3 && mangled[2] == 'N') i = 3;
  while (i < mangled.size() && mangled[i] >= '0' && mangled[i] <= '9') {
    std::size_t length = 0;
    while (i < mangled.size() && mangled[i] >= '0' && mangled[i] <= '9')
      length = length * 10 + (mangled[i++] - '0');
    if (length > mangled.size() - i) break;
    std::string_view part = mangled.substr(i, length);
    i += length;
    if (starts_with(part, "_GLOBAL__N_")) continue;
    if (!out.empty()) out += "::";
    out += part;
  }
  return out.empty() ? std::string(mangled) : out;
}

}  // namespace

std::string demangle(const std::string& mangled) {
  if (!starts_with(mangled, "_Z")) return mangled;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  if (status == 0 && text) return text.get();
  return nested_name(mangled);
}

std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      std::string_view part = trim(text.substr(begin, i - begin));
      if (!part.empty()) out.emplace_back(part);
      begin = i + 1;
    } else if (opens(text[i])) {
      ++depth;
    } else if (closes(text[i]) && depth > 0 && !(text[i] == '>' && i > 0 && text[i - 1] == '-')) {
      --depth;
    }
  }
  return out;
}

Name parse_name(std::string_view demangled) {
  std::string text = without_anonymous(demangled);
  Name name;
  // Walk to the parameter list: the first '(' at depth 0 that is not part of an operator or lambda.
  int angle = 0;
  std::size_t template_begin = 0, template_end = 0, parameters = text.size(), begin = 0;
  std::string base;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' && angle > 0) {
      // An expression in a template argument, "(8) > (0)": its comparisons close nothing.
      std::size_t depth = 0, end = i;
      for (; end < text.size(); ++end) {
        if (text[end] == '(') ++depth;
        if (text[end] == ')' && --depth == 0) break;
      }
      if (end < text.size()) i = end;
    } else if (c == '<') {
      if (angle++ == 0) template_begin = i + 1, template_end = text.size();
    } else if (c == '>') {
      if (angle > 0 && --angle == 0) template_end = i;
    } else if (angle == 0) {
      if (c == '(') {
        parameters = i;
        break;
      }
      if (c == ' ') {
        base.clear();
        begin = i + 1;
        template_begin = template_end = 0;
      } else {
        base += c;
      }
    }
  }
  (void)begin;
  name.base = base;
  std::size_t colon = base.rfind("::");
  name.leaf = colon == std::string::npos ? base : base.substr(colon + 2);
  if (template_end > template_begin) {
    name.templates = split_arguments(
        std::string_view(text).substr(template_begin, template_end - template_begin));
  }
  if (parameters < text.size()) {
    std::size_t end = text.size();
    if (text.back() == ')') --end;
    std::string_view list = std::string_view(text).substr(parameters + 1, end - parameters - 1);
    if (trim(list) != "void") name.parameters = split_arguments(list);
  }
  return name;
}

DType dtype_of(std::string_view type) {
  type = trim(type);
  for (std::string_view suffix : {" const", " volatile", "&"})
    while (ends_with(type, suffix)) type = trim(type.substr(0, type.size() - suffix.size()));
  if (starts_with(type, "const ")) type.remove_prefix(6);
  for (std::string_view prefix : {"c10::", "at::", "torch::headeronly::", "cutlass::", "nv_"})
    if (starts_with(type, prefix)) type.remove_prefix(prefix.size());
  struct Spelling {
    std::string_view text;
    DType type;
  };
  static constexpr Spelling spellings[] = {
      {"float", DType::f32},
      {"double", DType::f64},
      {"Half", DType::f16},
      {"__half", DType::f16},
      {"half_t", DType::f16},
      {"half", DType::f16},
      {"BFloat16", DType::bf16},
      {"__nv_bfloat16", DType::bf16},
      {"bfloat16_t", DType::bf16},
      {"bfloat16", DType::bf16},
      {"Float8_e4m3fn", DType::f8e4m3},
      {"Float8_e4m3fnuz", DType::f8e4m3},
      {"Float8_e5m2", DType::f8e5m2},
      {"Float8_e5m2fnuz", DType::f8e5m2},
      {"Float8_e8m0fnu", DType::u8},
      {"float_e4m3_t", DType::f8e4m3},
      {"float_e5m2_t", DType::f8e5m2},
      {"__nv_fp8_e4m3", DType::f8e4m3},
      {"__nv_fp8_e5m2", DType::f8e5m2},
      {"tfloat32_t", DType::tf32},
      {"Float4_e2m1fn_x2", DType::u8},
      {"long", DType::i64},
      {"long long", DType::i64},
      {"unsigned long", DType::i64},
      {"unsigned long long", DType::i64},
      {"int", DType::i32},
      {"unsigned int", DType::i32},
      {"unsigned", DType::i32},
      {"short", DType::i16},
      {"unsigned short", DType::i16},
      {"signed char", DType::i8},
      {"char", DType::i8},
      {"unsigned char", DType::u8},
      {"bool", DType::boolean},
      {"complex<float>", DType::c64},
      {"complex<double>", DType::c128},
      {"qint8", DType::i8},
      {"quint8", DType::u8},
      {"qint32", DType::i32},
      {"quint4x2", DType::u8},
      {"int64_t", DType::i64},
      {"int32_t", DType::i32},
      {"uint8_t", DType::u8},
      {"int8_t", DType::i8},
      {"complex<Half>", DType::unknown},
  };
  for (const Spelling& s : spellings)
    if (s.text == type) return s.type;
  return DType::unknown;
}

int size_of(std::string_view type) {
  if (is_pointer(type)) return 8;
  DType t = dtype_of(type);
  if (t != DType::unknown) return bits(t) / 8;
  if (contains(type, "complex<c10::Half>") || contains(type, "complex<Half>")) return 4;
  if (contains(type, "OpaqueType<")) {
    std::size_t at = type.find("OpaqueType<") + 11;
    return std::atoi(std::string(type.substr(at)).c_str());
  }
  if (ends_with(type, "uint4") || ends_with(type, "float4") || ends_with(type, "int4")) return 16;
  return 0;
}

DType first_dtype(std::string_view text) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    bool word = i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) ||
                                    text[i] == '_' || text[i] == ':' || text[i] == ' ');
    if (word) continue;
    std::string_view token = trim(text.substr(begin, i - begin));
    begin = i + 1;
    if (i < text.size() && text[i] == '<') {
      if (ends_with(token, "complex")) {
        if (starts_with(text.substr(i), "<float>")) return DType::c64;
        if (starts_with(text.substr(i), "<double>")) return DType::c128;
      }
      continue;
    }
    if (DType t = dtype_of(token); t != DType::unknown) return t;
  }
  return DType::unknown;
}

DType dtype_of_scalar_type(int scalar_type) {
  static constexpr DType types[] = {
      DType::u8,      DType::i8,      DType::i16,     DType::i32,     DType::i64,
      DType::f16,     DType::f32,     DType::f64,     DType::unknown, DType::c64,
      DType::c128,    DType::boolean, DType::i8,      DType::u8,      DType::i32,
      DType::bf16,    DType::u8,      DType::u8,      DType::unknown, DType::unknown,
      DType::unknown, DType::unknown, DType::unknown, DType::f8e5m2,  DType::f8e4m3,
      DType::f8e5m2,  DType::f8e4m3,  DType::i16,     DType::i32,     DType::i64};
  if (scalar_type < 0 || scalar_type >= static_cast<int>(std::size(types))) return DType::unknown;
  return types[scalar_type];
}

bool is_pointer(std::string_view type) {
  while (ends_with(type, " const") || ends_with(type, " __restrict__") ||
         ends_with(type, " restrict"))
    type = type.substr(0, type.rfind(' '));
  return ends_with(type, "*");
}

bool is_const_pointer(std::string_view type) {
  return is_pointer(type) && (contains(type, " const*") || starts_with(type, "const "));
}

std::string_view pointee(std::string_view type) {
  std::size_t star = type.rfind('*');
  if (star == std::string_view::npos) return type;
  type = trim(type.substr(0, star));
  for (std::string_view suffix : {" const", " volatile"})
    if (ends_with(type, suffix)) type = trim(type.substr(0, type.size() - suffix.size()));
  return type;
}

bool is_integer_scalar(std::string_view type) {
  return type == "int" || type == "long" || type == "unsigned int" || type == "unsigned long" ||
         type == "long long" || type == "unsigned long long" || type == "unsigned" ||
         type == "size_t" || type == "int64_t";
}

long template_number(const Name& name, std::size_t index, long otherwise) {
  if (index >= name.templates.size()) return otherwise;
  std::string_view text = name.templates[index];
  if (text == "true") return 1;
  if (text == "false") return 0;
  if (!text.empty() && text[0] == '(') {  // "(at::native::NormType)3"
    std::size_t close = text.find(')');
    if (close != std::string_view::npos) text.remove_prefix(close + 1);
  }
  char* end = nullptr;
  std::string copy(text);
  long value = std::strtol(copy.c_str(), &end, 10);
  return end == copy.c_str() ? otherwise : value;
}

DType template_dtype(const Name& name, std::size_t index, DType otherwise) {
  if (index >= name.templates.size()) return otherwise;
  DType t = dtype_of(name.templates[index]);
  return t == DType::unknown ? otherwise : t;
}

}  // namespace maya::decode
