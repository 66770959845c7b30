#include "session/compute.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

namespace maya::session {
namespace {

using Operand = decode::Semantics::Operand;
using Number = long double;  // 64 bits of mantissa hold every int64 exactly

float half_to_float(std::uint16_t h) {
  int exponent = (h >> 10) & 31;
  float mantissa = static_cast<float>(h & 1023);
  float value = exponent == 0 ? std::ldexp(mantissa, -24)
                              : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY) : std::ldexp(mantissa + 1024, exponent - 25);
  return h & 0x8000 ? -value : value;
}

std::uint16_t float_to_half(float f) {
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(f)) return sign | 0x7e00;
  float a = std::fabs(f);
  if (a >= 65520.0f) return sign | 0x7c00;
  if (a < std::ldexp(1.0f, -14)) return sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(a, 24)));
  int exponent = std::ilogb(a);
  auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(a, 10 - exponent)));
  return sign | static_cast<std::uint16_t>(((exponent + 15) << 10) + (mantissa - 1024));
}

std::optional<Number> read(DType type, const char* p) {
  auto as = [&](auto sample) {
    decltype(sample) v;
    std::memcpy(&v, p, sizeof v);
    return static_cast<Number>(v);
  };
  switch (type) {
    case DType::i64: return as(std::int64_t{});
    case DType::i32: return as(std::int32_t{});
    case DType::i16: return as(std::int16_t{});
    case DType::i8: return as(std::int8_t{});
    case DType::u8: return as(std::uint8_t{});
    case DType::boolean: return *p != 0 ? 1 : 0;
    case DType::f64: return as(double{});
    case DType::f32:
    case DType::tf32: return as(float{});
    case DType::f16: {
      std::uint16_t v;
      std::memcpy(&v, p, 2);
      return half_to_float(v);
    }
    case DType::bf16: {
      std::uint16_t v;
      std::memcpy(&v, p, 2);
      std::uint32_t bits = std::uint32_t{v} << 16;
      float f;
      std::memcpy(&f, &bits, 4);
      return f;
    }
    default: return std::nullopt;
  }
}

bool write(DType type, char* p, Number value) {
  auto as = [&](auto sample) {
    decltype(sample) v{};
    if constexpr (std::is_integral_v<decltype(sample)>)
      v = static_cast<decltype(sample)>(static_cast<std::int64_t>(value));
    else
      v = static_cast<decltype(sample)>(value);
    std::memcpy(p, &v, sizeof v);
    return true;
  };
  switch (type) {
    case DType::i64: return as(std::int64_t{});
    case DType::i32: return as(std::int32_t{});
    case DType::i16: return as(std::int16_t{});
    case DType::i8: return as(std::int8_t{});
    case DType::u8: return as(std::uint8_t{});
    case DType::boolean: return *p = value != 0, true;
    case DType::f64: return as(double{});
    case DType::f32:
    case DType::tf32: return as(float{});
    case DType::f16: {
      std::uint16_t v = float_to_half(static_cast<float>(value));
      return std::memcpy(p, &v, 2), true;
    }
    case DType::bf16: {
      auto f = static_cast<float>(value);
      std::uint32_t bits;
      std::memcpy(&bits, &f, 4);
      bits += 0x7fff + (bits >> 16 & 1);
      auto v = static_cast<std::uint16_t>(bits >> 16);
      return std::memcpy(p, &v, 2), true;
    }
    default: return false;
  }
}

std::int64_t count(const Operand& o) {
  std::int64_t n = 1;
  for (int i = 0; i < o.rank; ++i) n *= std::max<std::int64_t>(o.size[i], 0);
  return n;
}

std::int64_t offset(const Operand& o, std::int64_t index) {
  std::int64_t at = 0;
  for (int i = 0; i < o.rank; ++i) {
    if (o.size[i] > 0) {
      at += index % o.size[i] * o.stride[i];
      index /= o.size[i];
    }
  }
  return at;
}

// Bytes from the address that the operand can reach.
std::uint64_t reach(const Operand& o) {
  std::int64_t last = 0;
  for (int i = 0; i < o.rank; ++i)
    if (o.size[i] > 1 && o.stride[i] > 0) last += (o.size[i] - 1) * o.stride[i];
  return static_cast<std::uint64_t>(last) + static_cast<std::uint64_t>(std::max(bits(o.dtype) / 8, 1));
}

using Column = std::vector<Number>;

std::optional<Column> load(const Operand& o, device::Values& values, std::uint64_t limit) {
  std::uint64_t bytes = reach(o);
  std::int64_t n = count(o);
  if (bytes > limit || n <= 0 || n > static_cast<std::int64_t>(limit)) return std::nullopt;
  const auto* p = static_cast<const char*>(values.known(o.address, bytes));
  if (p == nullptr) return std::nullopt;
  Column out(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    auto v = read(o.dtype, p + offset(o, i));
    if (!v) return std::nullopt;
    out[static_cast<std::size_t>(i)] = *v;
  }
  return out;
}

void forget(const Operand& o, device::Values& values) { values.forget(o.address, reach(o)); }

void store(const Operand& o, const Column& data, device::Values& values, std::uint64_t limit) {
  std::uint64_t bytes = reach(o);
  if (bytes > limit || static_cast<std::int64_t>(data.size()) < count(o)) return forget(o, values);
  int element = bits(o.dtype) / 8;
  if (element == 0) return forget(o, values);
  std::vector<char> one(static_cast<std::size_t>(element));
  std::int64_t n = count(o);
  bool dense = reach(o) == static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(element);
  std::vector<char> all(dense ? bytes : 0);
  for (std::int64_t i = 0; i < n; ++i) {
    if (!write(o.dtype, one.data(), data[static_cast<std::size_t>(i)])) return forget(o, values);
    std::int64_t at = offset(o, i);
    if (dense)
      std::memcpy(all.data() + at, one.data(), one.size());
    else
      values.store(o.address + static_cast<std::uint64_t>(at), one.data(), one.size());
  }
  if (dense) values.store(o.address, all.data(), all.size());
}

std::optional<Number> apply(const std::string& f, Number a, Number b) {
  if (f == "add") return a + b;
  if (f == "sub") return a - b;
  if (f == "rsub") return b - a;
  if (f == "mul") return a * b;
  if (f == "div") return b == 0 ? std::optional<Number>() : a / b;
  if (f == "floor_div") return b == 0 ? std::optional<Number>() : std::floor(a / b);
  if (f == "trunc_div") return b == 0 ? std::optional<Number>() : std::trunc(a / b);
  if (f == "remainder") return b == 0 ? std::optional<Number>() : a - b * std::floor(a / b);
  if (f == "max" || f == "clamp_min") return std::max(a, b);
  if (f == "min" || f == "clamp_max") return std::min(a, b);
  if (f == "eq") return a == b;
  if (f == "ne") return a != b;
  if (f == "lt") return a < b;
  if (f == "le") return a <= b;
  if (f == "gt") return a > b;
  if (f == "ge") return a >= b;
  auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  if (f == "and" || f == "logical_and") return f == "and" ? x & y : (x != 0 && y != 0);
  if (f == "or" || f == "logical_or") return f == "or" ? x | y : (x != 0 || y != 0);
  if (f == "xor" || f == "logical_xor") return f == "xor" ? x ^ y : ((x != 0) != (y != 0));
  if (f == "shl") return static_cast<Number>(x << y);
  if (f == "shr") return static_cast<Number>(x >> y);
  return std::nullopt;
}

std::optional<Number> apply(const std::string& f, Number a) {
  if (f == "neg") return -a;
  if (f == "abs") return std::fabs(a);
  if (f == "not") return static_cast<Number>(~static_cast<std::int64_t>(a));
  if (f == "logical_not") return a == 0;
  if (f == "identity" || f.empty()) return a;
  if (f == "sign") return (a > 0) - (a < 0);
  if (f == "ceil") return std::ceil(a);
  if (f == "floor") return std::floor(a);
  if (f == "isnan") return std::isnan(a);
  if (f == "isinf") return std::isinf(a);
  return std::nullopt;
}

std::optional<Number> fold(const std::string& f, Number sum, Number v) {
  if (f == "sum" || f == "mean") return sum + v;
  if (f == "product") return sum * v;
  if (f == "max") return std::max(sum, v);
  if (f == "min") return std::min(sum, v);
  if (f == "any") return sum != 0 || v != 0;
  if (f == "all") return sum != 0 && v != 0;
  return std::nullopt;
}

// The index of the output element that an input element falls on: same rank, zero stride where reduced.
std::int64_t reduced_index(const Operand& in, const Operand& out, std::int64_t index) {
  std::int64_t at = 0, scale = 1;
  for (int i = 0; i < in.rank; ++i) {
    std::int64_t size = std::max<std::int64_t>(in.size[i], 1), position = index % size;
    index /= size;
    std::int64_t out_size = i < out.rank ? std::max<std::int64_t>(out.size[i], 1) : 1;
    if (out_size > 1) at += position * scale;
    scale *= out_size;
  }
  return at;
}

std::optional<Column> evaluate(const decode::Semantics& s, const std::vector<Column>& in) {
  using Kind = decode::Semantics::Kind;
  const Operand& out = s.outputs.at(0);
  auto n = static_cast<std::size_t>(count(out));
  Column result(n);
  auto input = [&](std::size_t k, std::size_t i) {
    return in[k].size() == 1 ? in[k][0] : in[k][std::min(i, in[k].size() - 1)];
  };
  switch (s.kind) {
    case Kind::fill:
      std::fill(result.begin(), result.end(), s.scalar);
      return result;
    case Kind::arange:
      for (std::size_t i = 0; i < n; ++i) result[i] = s.scalar + static_cast<Number>(i) * s.scalar2;
      return result;
    case Kind::copy_cast:
      if (in.empty()) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) result[i] = input(0, i);
      return result;
    case Kind::unary:
      if (in.empty()) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) {
        auto v = apply(s.function, input(0, i));
        if (!v) v = apply(s.function, input(0, i), s.scalar);
        if (!v) return std::nullopt;
        result[i] = *v;
      }
      return result;
    case Kind::binary:
    case Kind::compare:
      if (in.empty()) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) {
        Number b = in.size() > 1 ? input(1, i) : static_cast<Number>(s.scalar);
        if (s.function == "add" && in.size() > 1 && s.scalar != 0) b *= s.scalar;  // alpha
        auto v = apply(s.function, input(0, i), b);
        if (!v) return std::nullopt;
        result[i] = *v;
      }
      return result;
    case Kind::where:
      if (in.size() < 3) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) result[i] = input(0, i) != 0 ? input(1, i) : input(2, i);
      return result;
    case Kind::reduce: {
      if (in.empty() || n == 0) return std::nullopt;
      std::vector<bool> started(n);
      for (std::size_t i = 0; i < in[0].size(); ++i) {
        auto at = static_cast<std::size_t>(reduced_index(s.inputs[0], out, static_cast<std::int64_t>(i)));
        if (at >= n) return std::nullopt;
        bool logical = s.function == "any" || s.function == "all";
        Number v = logical ? in[0][i] != 0 : in[0][i];
        auto folded = started[at] ? fold(s.function, result[at], v) : std::optional<Number>(v);
        if (!folded) return std::nullopt;
        result[at] = *folded;
        started[at] = true;
      }
      if (s.function == "mean")
        for (auto& v : result) v /= static_cast<Number>(in[0].size() / n);
      return result;
    }
    case Kind::scan: {
      if (in.empty() || in[0].size() < n) return std::nullopt;
      std::int64_t row = s.k > 0 ? s.k : static_cast<std::int64_t>(n);
      for (std::size_t i = 0; i < n; ++i) {
        bool first = static_cast<std::int64_t>(i) % row == 0;
        auto v = first ? std::optional<Number>(in[0][i])
                       : fold(s.function.empty() ? "sum" : s.function, result[i - 1], in[0][i]);
        if (!v) return std::nullopt;
        result[i] = *v;
      }
      return result;
    }
    case Kind::histogram:
      if (in.empty()) return std::nullopt;
      for (auto v : in[0])
        if (v >= 0 && v < static_cast<Number>(n)) result[static_cast<std::size_t>(v)] += 1;
      return result;
    case Kind::gather:
      if (in.size() < 2) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) {
        auto at = static_cast<std::int64_t>(input(1, i));
        if (at < 0) at += static_cast<std::int64_t>(in[0].size());
        if (at < 0 || at >= static_cast<std::int64_t>(in[0].size())) return std::nullopt;
        result[i] = in[0][static_cast<std::size_t>(at)];
      }
      return result;
    case Kind::nonzero_count:
      if (in.empty() || n == 0) return std::nullopt;
      result[0] = static_cast<Number>(std::count_if(in[0].begin(), in[0].end(), [](Number v) { return v != 0; }));
      return result;
    case Kind::nonzero_write: {
      if (in.empty()) return std::nullopt;
      std::size_t to = 0;
      for (std::size_t i = 0; i < in[0].size() && to < n; ++i)
        if (in[0][i] != 0) result[to++] = static_cast<Number>(i);
      return result;
    }
    default: return std::nullopt;
  }
}

// Sorting known keys gives keys and their order; choosing from unknown scores is dealt round robin, so that
// every expert gets the same number of tokens.
void sort_or_choose(const decode::Semantics& s, device::Values& values, std::uint64_t limit) {
  auto keys = s.inputs.empty() ? std::nullopt : load(s.inputs[0], values, limit);
  std::int64_t row = s.inputs.empty() || s.inputs[0].rank == 0 ? 0 : s.inputs[0].size[0];
  std::int64_t k = s.k > 0 ? s.k : row;
  auto emit = [&](std::size_t output, const Column& column) {
    if (output < s.outputs.size()) store(s.outputs[output], column, values, limit);
  };
  if (!keys || row <= 0) {
    if (s.outputs.empty()) return;
    if (!s.outputs.empty()) forget(s.outputs[0], values);
    if (s.outputs.size() > 1 && row > 0) {
      auto n = static_cast<std::size_t>(count(s.outputs[1]));
      Column chosen(n);
      for (std::size_t i = 0; i < n; ++i) chosen[i] = static_cast<Number>(static_cast<std::int64_t>(i) % row);
      emit(1, chosen);
    }
    return;
  }
  Column sorted, order;
  bool descending = s.function == "descending" || s.kind == decode::Semantics::Kind::topk;
  for (std::size_t begin = 0; begin + static_cast<std::size_t>(row) <= keys->size(); begin += static_cast<std::size_t>(row)) {
    std::vector<std::size_t> index(static_cast<std::size_t>(row));
    std::iota(index.begin(), index.end(), 0);
    std::stable_sort(index.begin(), index.end(), [&](std::size_t a, std::size_t b) {
      return descending ? (*keys)[begin + a] > (*keys)[begin + b] : (*keys)[begin + a] < (*keys)[begin + b];
    });
    for (std::int64_t i = 0; i < k && i < row; ++i) {
      sorted.push_back((*keys)[begin + index[static_cast<std::size_t>(i)]]);
      order.push_back(static_cast<Number>(index[static_cast<std::size_t>(i)]));
    }
  }
  // Values carried along (sort by key) follow the order of their keys.
  if (s.inputs.size() > 1)
    if (auto carried = load(s.inputs[1], values, limit); carried && carried->size() == keys->size()) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        std::size_t begin = i / static_cast<std::size_t>(k) * static_cast<std::size_t>(row);
        order[i] = (*carried)[begin + static_cast<std::size_t>(order[i])];
      }
    }
  emit(0, sorted);
  emit(1, order);
}

}  // namespace

void compute(const decode::Semantics& s, device::Values& values, std::uint64_t limit) {
  using Kind = decode::Semantics::Kind;
  if (s.kind == Kind::sort || s.kind == Kind::topk) return sort_or_choose(s, values, limit);
  std::vector<Column> in;
  bool known = !s.outputs.empty() && reach(s.outputs[0]) <= limit;
  for (const auto& operand : s.inputs) {
    if (!known) break;
    auto column = load(operand, values, limit);
    if (column)
      in.push_back(std::move(*column));
    else
      known = false;
  }
  auto result = known ? evaluate(s, in) : std::nullopt;
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    if (i == 0 && result)
      store(s.outputs[0], *result, values, limit);
    else
      forget(s.outputs[i], values);
  }
}

}  // namespace maya::session
