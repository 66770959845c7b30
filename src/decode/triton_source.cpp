#include "decode/triton_source.h"

#include <algorithm>

#include "decode/triton_cache.h"

namespace maya::decode {
namespace {

// Of TTIR: "bf16", "f8E4M3FN", "i32", …
DType element(std::string_view type) {
  constexpr std::pair<std::string_view, DType> types[] = {
      {"bf16", DType::bf16}, {"f16", DType::f16},       {"f32", DType::f32},
      {"f64", DType::f64},   {"f8E5M2", DType::f8e5m2}, {"f8E4M3", DType::f8e4m3},
      {"i64", DType::i64},   {"i32", DType::i32},       {"i16", DType::i16},
      {"i8", DType::i8},     {"i1", DType::boolean}};
  for (const auto& [name, value] : types)
    if (starts_with(type, name)) return value;
  return DType::unknown;
}

}  // namespace

int TritonSource::find(std::string_view name) const {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name) return static_cast<int>(i);
  return -1;
}

DType TritonSource::type(std::string_view name) const {
  const int at = find(name);
  return at < 0 ? DType::unknown : parameters[static_cast<std::size_t>(at)].element;
}

std::int64_t TritonSource::integer(const Arguments& a, std::string_view name) const {
  const int at = find(name);
  return at < 0 ? 1 : a.integer(static_cast<std::size_t>(at));
}

std::uint64_t TritonSource::pointer(const Arguments& a, std::string_view name) const {
  const int at = find(name);
  return at < 0 ? 0 : a.pointer(static_cast<std::size_t>(at));
}

std::vector<bool> TritonSource::none_of(const std::vector<std::string_view>& results) const {
  std::vector<bool> out;
  for (const Parameter& parameter : parameters)
    out.push_back(std::find(results.begin(), results.end(), parameter.name) == results.end());
  return out;
}

std::size_t TritonSource::key(const Arguments& a, std::initializer_list<std::int64_t> more,
                              std::byte* out, std::size_t capacity) const {
  std::size_t used = 0;
  auto add = [&](std::int64_t value) {
    if (used + sizeof value > capacity) return;
    std::memcpy(out + used, &value, sizeof value);
    used += sizeof value;
  };
  for (std::int64_t value : more) add(value);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].pointer) add(a.integer(i));
  return used;
}

// tt.func public @kernel(%a_ptr: !tt.ptr<bf16> {…} loc("a_ptr"(#loc)), %N: i32 …) attributes {…} {
std::optional<TritonSource> read_triton_source(std::string_view ttir, std::string_view kernel,
                                               const std::vector<std::uint16_t>& sizes) {
  const std::string mark = "tt.func public @" + std::string(kernel) + "(";
  const std::size_t at = ttir.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t open = at + mark.size();
  int depth = 1;
  std::size_t close = open;
  bool quoted = false;
  for (; close < ttir.size() && depth > 0; ++close) {
    const char c = ttir[close];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(') ++depth;
    if (c == ')') --depth;
  }
  if (depth > 0) return std::nullopt;
  TritonSource out;
  // Functions of a module follow each other.
  out.text = ttir.substr(at, ttir.find("\n  tt.func", close) - at);
  for (const std::string& word : split_arguments(ttir.substr(open, close - 1 - open))) {
    const std::size_t colon = word.find(": ");
    if (word.empty() || word[0] != '%' || colon == std::string::npos) return std::nullopt;
    TritonSource::Parameter parameter;
    parameter.name = word.substr(1, colon - 1);
    constexpr std::string_view unnamed = "arg";
    if (starts_with(parameter.name, unnamed) && parameter.name.size() > unnamed.size() &&
        parameter.name.find_first_not_of("0123456789", unnamed.size()) == std::string::npos)
      return std::nullopt;
    std::string_view type = std::string_view(word).substr(colon + 2);
    constexpr std::string_view pointer = "!tt.ptr<";
    parameter.pointer = starts_with(type, pointer);
    if (parameter.pointer) type.remove_prefix(pointer.size());
    parameter.element = element(type);
    const std::size_t i = out.parameters.size();
    const int bytes = parameter.pointer ? 8 : bits(parameter.element) / 8;
    // Descriptors of tensors become several parameters.
    if (i >= sizes.size() || sizes[i] != bytes) return std::nullopt;
    out.parameters.push_back(std::move(parameter));
  }
  return out;
}

std::optional<TritonSource> triton_source(const Kernel& kernel) {
  if (!kernel.ttir.empty())
    return read_triton_source(kernel.ttir, kernel.mangled, kernel.parameter_sizes);
  if (kernel.image.empty()) return std::nullopt;
  const auto text = find_triton_file(kernel.mangled, kernel.image, ".ttir");
  if (!text) return std::nullopt;
  return read_triton_source(*text, kernel.mangled, kernel.parameter_sizes);
}

}  // namespace maya::decode
