#include "shim/nvrtc/jiterator.h"

#include <cctype>
#include <cstdlib>
#include <utility>
#include <vector>

namespace maya::shim::nvrtc {
namespace {

std::string in_aten(std::string type) {
  for (auto [theirs, ours] :
       {std::pair<std::string_view, std::string_view>{"std::complex", "c10::complex"},
        {"at::", "c10::"},
        {"int64_t", "long"}})
    for (std::size_t i = type.find(theirs); i != std::string::npos;
         i = type.find(theirs, i + ours.size()))
      type.replace(i, theirs.size(), ours);
  return type;
}

// The type in front of "arg0[8];", in ATen's spelling.
std::string type_of(std::string_view code, const std::string& variable) {
  const std::size_t at = code.find(" " + variable + "[");
  if (at == std::string_view::npos) return {};
  std::size_t begin = code.find_last_of("\n;{", at);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  while (begin < at && std::isspace(static_cast<unsigned char>(code[begin]))) ++begin;
  return in_aten(std::string(code.substr(begin, at - begin)));
}

bool take_suffix(std::string& name, std::string_view suffix) {
  if (!std::string_view(name).ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

// "exp2_kernel_vectorized4" → 4, and the name without it; 0 where there is none.
int take_vector(std::string& name) {
  constexpr std::string_view mark = "_vectorized";
  const std::size_t at = name.rfind(mark);
  if (at == std::string::npos || at + mark.size() >= name.size()) return 0;
  const int width = std::atoi(name.c_str() + at + mark.size());
  name.resize(at);
  return width;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string elementwise_twin(const Kernel& kernel, std::string_view code) {
  std::string name = kernel.name;
  if (kernel.parameters.size() < 3 || !kernel.parameters[1].starts_with("Array<char*") ||
      !take_suffix(name, "_kernel"))
    return {};
  const int vector = take_vector(name);
  std::vector<std::string> inputs;
  for (std::string type; !(type = type_of(code, "arg" + std::to_string(inputs.size()))).empty();)
    inputs.push_back(type);
  const std::string result = type_of(code, "out0");
  if (inputs.empty() || result.empty()) return {};
  const std::string functor = "at::native::JittedFunctor<" + result + ", at::native::" + name +
                              "(at::TensorIteratorBase&)::{lambda(" + join(inputs) + ")#1}>";
  const std::string data = "std::array<char*, " + std::to_string(inputs.size() + 1) + "ul>";
  if (vector > 0)
    return "void at::native::vectorized_elementwise_kernel<" + std::to_string(vector) + ", " +
           functor + ", " + data + ", false>(int, " + data + ")";
  if (kernel.parameters.size() < 6) return {};
  std::vector<std::string> rest(kernel.parameters.begin() + 2, kernel.parameters.begin() + 6);
  return "void at::native::unrolled_elementwise_kernel<" + functor + ", " + data + ", 4, " +
         join(rest) + ">(int, " + data + ", " + join(rest) + ")";
}

// "using scalar_t = float;" within the structure that is the kernel's parameter.
std::string alias(std::string_view source, std::string_view name) {
  const std::size_t structure = source.find("struct ReduceJitOp");
  const std::string line = "using " + std::string(name) + " = ";
  const std::size_t at =
      structure == std::string_view::npos ? structure : source.find(line, structure);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + line.size();
  return in_aten(std::string(source.substr(begin, source.find(';', begin) - begin)));
}

std::string reduction_twin(const Kernel& kernel, std::string_view source) {
  std::string name = kernel.name;
  constexpr std::string_view prefix = "reduction_";
  if (!name.starts_with(prefix) || !take_suffix(name, "_kernel")) return {};
  const std::string in = alias(source, "scalar_t"), out = alias(source, "out_scalar_t");
  if (in.empty() || out.empty()) return {};
  const std::string op = "at::native::ReduceOp<" + in +
                         ", at::native::" + name.substr(prefix.size()) + "_functor<" + in +
                         ">, unsigned int, " + out + ", 4, 4>";
  return "void at::native::reduce_kernel<512, 1, " + op + " >(" + op + ")";
}

}  // namespace

std::string precompiled_twin(const Kernel& kernel, std::string_view source, std::size_t at) {
  if (kernel.parameters.size() == 1 && kernel.parameters[0] == "ReduceJitOp")
    return reduction_twin(kernel, source);
  return elementwise_twin(kernel, source.substr(at));
}

}  // namespace maya::shim::nvrtc
