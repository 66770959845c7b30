#include "decode/functor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace maya::decode {
namespace {

// The identifier in front of the first '<' or '(': "at::native::AbsFunctor<int>" → "AbsFunctor".
std::string head(std::string_view type) {
  std::size_t end = type.find_first_of("<(");
  std::string_view text = type.substr(0, end);
  std::size_t colon = text.rfind("::");
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

std::vector<std::string> arguments_of(std::string_view type) {
  std::size_t open = type.find('<');
  if (open == std::string_view::npos) return {};
  int depth = 0;
  for (std::size_t i = open; i < type.size(); ++i) {
    if (type[i] == '<') ++depth;
    if (type[i] == '>' && --depth == 0) return split_arguments(type.substr(open + 1, i - open - 1));
  }
  return split_arguments(type.substr(open + 1));
}

// Parameter types of the innermost lambda: the last "{lambda(…)#n}".
bool lambda_parameters(std::string_view type, std::vector<std::string>& out) {
  constexpr std::string_view marker = "{lambda(";
  std::size_t at = type.rfind(marker);
  if (at == std::string_view::npos) return false;
  std::size_t begin = at + marker.size(), i = begin;
  int depth = 1;
  for (; i < type.size() && depth > 0; ++i) {
    if (type[i] == '(') ++depth;
    if (type[i] == ')') --depth;
  }
  if (depth != 0) return false;
  out = split_arguments(type.substr(begin, i - begin - 1));
  for (std::string& s : out)  // "c10::Half const&"
    while (!s.empty() && (ends_with(s, "&") || ends_with(s, " const")))
      s.resize(s.size() - (ends_with(s, "&") ? 1 : 6));
  return true;
}

void strip(std::string& text, std::string_view part) {
  std::size_t at = text.find(part);
  if (at != std::string::npos) text.erase(at, part.size());
}

std::string plain(std::string name) {
  for (std::string_view part : {"_kernel_cuda_impl", "_kernel_cuda", "_cuda_kernel",
                                "CUDAKernelImpl", "_kernel_impl", "_kernel", "CUDAFunctor_",
                                "Functor", "_functor", "_cuda_out", "_out_cuda", "_cuda", "_out"})
    strip(name, part);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  while (!name.empty() && name.front() == '_') name.erase(0, 1);
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

bool returns_bool(std::string_view function) {
  static constexpr std::array<std::string_view, 16> names{
      "logical_not",    "logical_and", "logical_or", "logical_xor", "signbit", "isnan",
      "isinf",          "isposinf",    "isneginf",   "isfinite",    "compare", "compareeq",
      "compare_scalar", "isin",        "isreal",     "eq"};
  return std::find(names.begin(), names.end(), function) != names.end();
}

// Of the functors that wrap another one: what the inner does.
void name_inner(Functor& f, std::string_view inner) {
  std::string inner_head = head(inner);
  f.function = plain(inner_head);
  if (inner_head == "CompareEqFunctor" || inner_head == "CompareFunctor") {
    f.compares = true;
    f.operator_offset = 0;
    f.function = inner_head == "CompareEqFunctor" ? "compareeq" : "compare";
  }
}

// Functions with a lambda for each of several cases.
void name_branch(Functor& f, std::string_view type, const std::vector<std::string>& arguments) {
  const std::string first = f.inputs.empty() ? "float" : f.inputs[0];
  auto keeps = [&f](const std::string& scalar, int behind) {
    f.scalar_type = !is_integer(dtype_of(scalar)) && size_of(scalar) == 2 ? "float" : scalar;
    f.scalar_size = std::max(1, size_of(f.scalar_type));
    f.scalar_offset = behind == 0 ? 0 : std::max(behind, f.scalar_size);
  };
  if (f.function == "launch_clamp_scalar") {  // { which of the limits, lower or only, upper }
    f.function = "clamp";
    keeps(first, 4);
  }
  if (f.function == "pow_tensor_scalar") {
    std::size_t at = type.rfind('#');
    switch (at == std::string_view::npos ? '?' : type[at + 1]) {
      case '1':
        f.function = "square";
        break;
      case '2':
        f.function = "cube";
        break;
      case '4':
        f.function = "pow";
        keeps(arguments.size() > 1 ? arguments[1] : first, 0);
        break;
      default:
        break;
    }
  }
}

}  // namespace

int flops_of(std::string_view function) {
  struct Cost {
    std::string_view part;
    int flops;
  };
  // Special functions cost several operations on the plain cores or the SFU.
  static constexpr Cost costs[] = {{"gelu_backward", 30},
                                   {"gelubackward", 30},
                                   {"gelu", 20},
                                   {"silu_backward", 12},
                                   {"silu", 10},
                                   {"mish", 24},
                                   {"tanh", 12},
                                   {"sigmoid", 8},
                                   {"softplus", 16},
                                   {"logaddexp", 16},
                                   {"log_sigmoid", 16},
                                   {"erf", 16},
                                   {"exp", 8},
                                   {"log", 8},
                                   {"pow", 16},
                                   {"sin", 12},
                                   {"cos", 12},
                                   {"tan", 16},
                                   {"rsqrt", 4},
                                   {"sqrt", 4},
                                   {"div", 4},
                                   {"reciprocal", 4},
                                   {"lgamma", 40},
                                   {"batch_norm", 6},
                                   {"groupnorm", 4},
                                   {"addcdiv", 6},
                                   {"addcmul", 3},
                                   {"lerp", 3},
                                   {"mse", 2},
                                   {"binary_cross_entropy", 20},
                                   {"direct_copy", 0},
                                   {"copy", 0},
                                   {"fill", 0},
                                   {"where", 0},
                                   {"masked_fill", 0}};
  for (const Cost& c : costs)
    if (contains(function, c.part)) return c.flops;
  return 1;
}

Functor parse_functor(std::string_view type, int inputs) {
  Functor f;
  std::string name = head(type);
  std::vector<std::string> arguments = arguments_of(type);
  bool done = false;

  if (name == "JittedFunctor" && arguments.size() == 2) {  // compiled at run time: result, lambda
    f = parse_functor(arguments[1], inputs);
    f.result = arguments[0];
    return f;
  }
  if ((name == "BinaryFunctor" || name == "AUnaryFunctor" || name == "BUnaryFunctor") &&
      arguments.size() >= 4) {
    f.result = arguments[2];
    if (name == "BinaryFunctor") {
      f.inputs = {arguments[0], arguments[1]};
    } else {
      f.scalar_first = name == "AUnaryFunctor";
      f.inputs = {f.scalar_first ? arguments[1] : arguments[0]};
      f.scalar_type = f.scalar_first ? arguments[0] : arguments[1];
      // opmath: 16-bit floats are kept as float.
      if (size_of(f.scalar_type) == 2 && !is_integer(dtype_of(f.scalar_type)))
        f.scalar_type = "float";
      f.scalar_size = std::max(1, size_of(f.scalar_type));
    }
    name_inner(f, arguments[3]);
    if (f.scalar_size) f.scalar_offset = f.compares ? std::max(4, f.scalar_size) : f.scalar_size;
    done = true;
  } else if (name == "BUnaryFunctor" || name == "AUnaryFunctor" || name == "BinaryFunctor") {
    // Before 1.12 these carried only the inner functor: BUnaryFunctor<AddFunctor<long>>.
    name_inner(f, arguments.empty() ? type : std::string_view(arguments[0]));
    std::string t;
    std::vector<std::string> inner = arguments.empty() ? arguments : arguments_of(arguments[0]);
    t = inner.empty() ? "float" : inner[0];
    f.inputs.assign(name == "BinaryFunctor" ? 2 : 1, t);
    f.result = f.compares ? "bool" : t;
    done = true;
  }

  if (!done && contains(type, "{lambda(")) {
    lambda_parameters(type, f.inputs);
    f.function = plain(name);
    std::string first = f.inputs.empty() ? "" : f.inputs[0];
    f.result = first;
    // converting_copy_kernel_cuda<From, To>
    if (name == "converting_copy_kernel_cuda" && arguments.size() >= 2) f.result = arguments[1];
    if (name == "bfloat16_copy_kernel_cuda") f.result = "c10::BFloat16";
    if (name == "float16_copy_kernel_cuda") f.result = "c10::Half";
    if (name == "bfloat16tofloat32_copy_kernel_cuda" || name == "float16tofloat32_copy_kernel_cuda")
      f.result = "float";
    if (f.function == "where" && f.inputs.size() > 1) f.result = f.inputs[1];
    name_branch(f, type, arguments);
    if (f.function == "masked_fill" || f.function == "compare_scalar") {
      f.scalar_type = f.inputs.empty() ? "float" : f.inputs[0];
      f.scalar_size = std::max(1, size_of(f.scalar_type));
      if (f.function == "compare_scalar") {
        f.compares = true;
        f.operator_offset = 0;
        f.scalar_offset = std::max(4, f.scalar_size);
      }
    }
    done = true;
  }

  if (!done) {
    f.function = plain(name);
    std::string t = arguments.empty() ? "" : arguments[0];
    if (name == "ConvertFloatToFloat8E5M2Op") f.inputs = {"float"}, f.result = "c10::Float8_e5m2";
    if (name == "ConvertToFloat8E4M3fnOp")
      f.inputs = {t.empty() ? "float" : t}, f.result = "c10::Float8_e4m3fn";
    if (f.result.empty()) {
      int n = inputs >= 0 ? inputs : name == "FillFunctor" ? 0 : 1;
      f.inputs.assign(static_cast<std::size_t>(n), t);
      f.result = t;
      if (name == "CompareEqFunctor" || name == "CompareFunctor") name_inner(f, type);
      if (name == "FillFunctor") f.scalar_type = t, f.scalar_size = size_of(t);
      if (name == "CUDAFunctorOnSelf_add" || name == "CUDAFunctorOnOther_add" ||
          name == "CUDAFunctor_add") {
        f.function = "add";
        // { opmath_t alpha } or { opmath_t other, alpha }.
        f.scalar_type = !is_integer(dtype_of(t)) && size_of(t) == 2 ? "float" : t;
        f.scalar_size = size_of(f.scalar_type);
        f.scalar_first = name == "CUDAFunctorOnOther_add";
      }
    }
  }

  if (f.compares || returns_bool(f.function)) f.result = "bool";
  if (f.result.empty() && !f.inputs.empty()) f.result = f.inputs.front();
  if ((f.function == "abs" || f.function == "angle") && contains(f.result, "complex<"))
    f.result = contains(f.result, "double") ? "double" : "float";
  f.flops = flops_of(f.function);
  return f;
}

double scalar_value(const std::byte* p, DType type) {
  auto get = [p]<class T>(T value) {
    std::memcpy(&value, p, sizeof(T));
    return static_cast<double>(value);
  };
  switch (type) {
    case DType::f64:
      return get(double{});
    case DType::f32:
      return get(float{});
    case DType::i64:
      return get(std::int64_t{});
    case DType::i32:
      return get(std::int32_t{});
    case DType::i16:
      return get(std::int16_t{});
    case DType::i8:
      return get(std::int8_t{});
    case DType::u8:
    case DType::boolean:
      return get(std::uint8_t{});
    default:
      return std::nan("");
  }
}

std::string plain_name(const std::string& function) {
  struct Alias {
    std::string_view from, to;
  };
  static constexpr Alias aliases[] = {
      {"bitwiseand", "and"},       {"bitwiseor", "or"},        {"bitwisexor", "xor"},
      {"bitwise_not", "not"},      {"maximum", "max"},         {"minimum", "min"},
      {"div_floor", "floor_div"},  {"div_trunc", "trunc_div"}, {"lshift", "shl"},
      {"rshift", "shr"},           {"clamp_min", "clamp_min"}, {"clamp_max", "clamp_max"},
      {"pow_tensor_tensor", "pow"}};
  for (const Alias& a : aliases)
    if (a.from == function) return std::string(a.to);
  return function;
}

}  // namespace maya::decode
