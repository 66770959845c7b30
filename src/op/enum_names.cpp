// enum_name and parse_enum for the enums of op.h: one table each, in the order of the enum.
#include <array>

#include "maya/op.h"

namespace maya {
namespace {

template <class E>
struct Names;

template <>
struct Names<Direction> {
  static constexpr std::array<std::string_view, 4> values{"forward", "backward", "data_gradient",
                                                          "weight_gradient"};
};
template <>
struct Names<Epilogue> {
  static constexpr std::array<std::string_view, 10> values{
      "none",      "bias",      "relu",      "gelu",      "bias_relu",
      "bias_gelu", "relu_grad", "gelu_grad", "bias_grad", "other"};
};
template <>
struct Names<Layout> {
  static constexpr std::array<std::string_view, 2> values{"channels_first", "channels_last"};
};
template <>
struct Names<AttentionKernel> {
  static constexpr std::array<std::string_view, 5> values{"flash2", "flash3", "cudnn",
                                                          "memory_efficient", "other"};
};
template <>
struct Names<NormKind> {
  static constexpr std::array<std::string_view, 7> values{
      "layer", "rms", "batch", "group", "instance", "weight_reduction", "l2"};
};
template <>
struct Names<ReduceKind> {
  static constexpr std::array<std::string_view, 9> values{
      "sum", "mean", "max", "min", "norm", "argmax", "any", "product", "other"};
};
template <>
struct Names<OptimizerKind> {
  static constexpr std::array<std::string_view, 8> values{"adam", "adamw",   "sgd",     "lamb",
                                                          "lion", "adagrad", "rmsprop", "other"};
};
template <>
struct Names<CopyDirection> {
  static constexpr std::array<std::string_view, 5> values{"device", "host_to_device",
                                                          "device_to_host", "peer", "host"};
};
template <>
struct Names<CollectiveKind> {
  static constexpr std::array<std::string_view, 9> values{
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
      "all_to_all", "gather",     "scatter",        "barrier"};
};
template <>
struct Names<ReduceOp> {
  static constexpr std::array<std::string_view, 6> values{"sum", "product", "max",
                                                          "min", "average", "other"};
};
template <>
struct Names<CollectiveLibrary> {
  static constexpr std::array<std::string_view, 4> values{"nccl", "vllm", "sglang", "trtllm"};
};
template <>
struct Names<ExpertsPart> {
  static constexpr std::array<std::string_view, 3> values{"unknown", "first", "second"};
};
template <>
struct Names<Loops> {
  static constexpr std::array<std::string_view, 3> values{"counted", "assumed", "unknown"};
};

template <class E>
std::string_view find_name(E value) {
  auto i = static_cast<std::size_t>(value);
  return i < Names<E>::values.size() ? Names<E>::values[i] : std::string_view("invalid");
}

template <class E>
std::optional<E> find_value(std::string_view name) {
  for (std::size_t i = 0; i < Names<E>::values.size(); ++i)
    if (Names<E>::values[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace

#define MAYA_ENUM(E)                                   \
  template <>                                          \
  std::string_view enum_name<E>(E value) {             \
    return find_name(value);                           \
  }                                                    \
  template <>                                          \
  std::optional<E> parse_enum<E>(std::string_view s) { \
    return find_value<E>(s);                           \
  }

MAYA_ENUM(Direction)
MAYA_ENUM(Epilogue)
MAYA_ENUM(Layout)
MAYA_ENUM(AttentionKernel)
MAYA_ENUM(NormKind)
MAYA_ENUM(ReduceKind)
MAYA_ENUM(OptimizerKind)
MAYA_ENUM(CopyDirection)
MAYA_ENUM(CollectiveKind)
MAYA_ENUM(ReduceOp)
MAYA_ENUM(CollectiveLibrary)
MAYA_ENUM(ExpertsPart)
MAYA_ENUM(Loops)
#undef MAYA_ENUM

template <>
std::string_view enum_name<DType>(DType value) {
  return name(value);
}
template <>
std::optional<DType> parse_enum<DType>(std::string_view s) {
  return parse_dtype(s);
}

}  // namespace maya
