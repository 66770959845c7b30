#include "values/formula.h"

#include <algorithm>
#include <cstring>

namespace maya::values {
namespace {

using Kind = Semantics::Kind;
using Places = std::vector<std::int64_t>;
constexpr std::size_t chunk = 4096;

bool whole_number(double v) { return v == static_cast<double>(static_cast<std::int64_t>(v)); }

// The known functions of integers; anything else has no formula.
bool apply(const std::string& f, const Places& a, const Places& b, Places& out) {
  auto each = [&](auto op) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = op(a[i], b[i]);
    return true;
  };
  using I = std::int64_t;
  if (f == "ge") return each([](I x, I y) { return I{x >= y}; });
  if (f == "gt") return each([](I x, I y) { return I{x > y}; });
  if (f == "le") return each([](I x, I y) { return I{x <= y}; });
  if (f == "lt") return each([](I x, I y) { return I{x < y}; });
  if (f == "eq") return each([](I x, I y) { return I{x == y}; });
  if (f == "ne") return each([](I x, I y) { return I{x != y}; });
  if (f == "and") return each([](I x, I y) { return x & y; });
  if (f == "or") return each([](I x, I y) { return x | y; });
  if (f == "xor") return each([](I x, I y) { return x ^ y; });
  if (f == "logical_and") return each([](I x, I y) { return I{x != 0 && y != 0}; });
  if (f == "logical_or") return each([](I x, I y) { return I{x != 0 || y != 0}; });
  if (f == "logical_xor") return each([](I x, I y) { return I{(x != 0) != (y != 0)}; });
  if (f == "mul") return each([](I x, I y) { return x * y; });
  if (f == "sub") return each([](I x, I y) { return x - y; });
  if (f == "rsub") return each([](I x, I y) { return y - x; });
  if (f == "max" || f == "clamp_min") return each([](I x, I y) { return std::max(x, y); });
  if (f == "min" || f == "clamp_max") return each([](I x, I y) { return std::min(x, y); });
  return false;
}

bool apply(const std::string& f, bool boolean, const Places& a, Places& out) {
  auto each = [&](auto op) {
    std::transform(a.begin(), a.end(), out.begin(), op);
    return true;
  };
  using I = std::int64_t;
  if (f == "logical_not" || (f == "not" && boolean)) return each([](I x) { return I{x == 0}; });
  if (f == "not") return each([](I x) { return ~x; });
  if (f == "neg") return each([](I x) { return -x; });
  if (f == "abs") return each([](I x) { return x < 0 ? -x : x; });
  return false;
}

bool whole(DType type) { return type == DType::boolean || is_integer(type); }

}  // namespace

std::shared_ptr<Formula> Formula::of(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  const bool pointwise = s.kind == Kind::binary || s.kind == Kind::compare ||
                         s.kind == Kind::unary || s.kind == Kind::copy_cast;
  if (!pointwise || s.outputs.size() != 1 || s.inputs.empty() || s.inputs.size() > 2)
    return nullptr;
  const Operand& out = s.outputs[0];
  if (!whole(out.dtype) || !dense(out) || count(out) <= 0 || !whole_number(s.scalar))
    return nullptr;
  auto made = std::make_shared<Formula>();
  for (const Operand& operand : s.inputs) {
    if (!whole(operand.dtype) || (count(operand) != count(out) && count(operand) != 1))
      return nullptr;
    Input input;
    input.shape = operand;
    const Range r = range(operand);
    const auto bytes = static_cast<std::uint64_t>(r.high - r.low);
    const std::uint64_t begin = operand.address + static_cast<std::uint64_t>(r.low);
    std::uint64_t base = 0;
    if (auto promised = std::dynamic_pointer_cast<Formula>(values.promised(begin, bytes, base))) {
      const auto element = static_cast<std::int64_t>(bits(operand.dtype) / 8);
      input.formula = promised;
      input.first = static_cast<std::int64_t>(operand.address - base) / element;
      if (promised->out_.dtype != operand.dtype) return nullptr;
    } else {
      const void* known = bytes <= limit ? values.known(begin, bytes) : nullptr;
      if (known == nullptr) return nullptr;
      input.bytes.assign(static_cast<const char*>(known), static_cast<const char*>(known) + bytes);
      input.low = r.low;
    }
    made->inputs_.push_back(std::move(input));
  }
  made->kind_ = s.kind;
  made->function_ = s.function;
  made->scalar_ = s.scalar;
  made->out_ = out;
  // Functions without a formula are found now, not when somebody asks.
  std::vector<std::int64_t> one;
  return made->at({0}, one) ? made : nullptr;
}

bool Formula::at(const std::vector<std::int64_t>& places, std::vector<std::int64_t>& out) const {
  std::vector<Places> in(inputs_.size(), Places(places.size()));
  Places inner(places.size());
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const Input& input = inputs_[k];
    const auto element = static_cast<std::int64_t>(bits(input.shape.dtype) / 8);
    const bool one = count(input.shape) == 1;  // for all
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t bytes = one ? 0 : offset(input.shape, places[i]);
      if (input.formula) {
        inner[i] = input.first + bytes / element;
      } else {
        auto number = read(input.shape.dtype, input.bytes.data() + (bytes - input.low));
        if (!number) return false;
        in[k][i] = static_cast<std::int64_t>(*number);
      }
    }
    if (input.formula && !input.formula->at(inner, in[k])) return false;
  }
  out.resize(places.size());
  if (kind_ == Kind::copy_cast) {
    out = in[0];
    if (out_.dtype == DType::boolean)
      for (auto& v : out) v = v != 0;
    return true;
  }
  if (kind_ == Kind::unary &&
      apply(function_, inputs_[0].shape.dtype == DType::boolean, in[0], out))
    return true;
  const bool scaled = function_ == "add" && in.size() > 1 && scalar_ != 0;
  if (in.size() < 2) in.emplace_back(places.size(), static_cast<std::int64_t>(scalar_));
  if (function_ == "add") {
    const std::int64_t factor = scaled ? static_cast<std::int64_t>(scalar_) : 1;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[0][i] + factor * in[1][i];
    return true;
  }
  return apply(function_, in[0], in[1], out);
}

bool Formula::resolve(void* to, std::uint64_t bytes) {
  const auto element = static_cast<std::uint64_t>(bits(out_.dtype) / 8);
  Places places, out;
  auto* at_byte = static_cast<char*>(to);
  for (std::uint64_t first = 0; first < bytes / element; first += chunk) {
    places.resize(std::min<std::uint64_t>(chunk, bytes / element - first));
    for (std::size_t i = 0; i < places.size(); ++i)
      places[i] = static_cast<std::int64_t>(first + i);
    if (!at(places, out)) return false;
    for (std::int64_t value : out) {
      if (!write(out_.dtype, at_byte, static_cast<Number>(value))) return false;
      at_byte += element;
    }
  }
  return true;
}

std::optional<Column> reduce_formula(const Semantics& s, KnownBytes& values) {
  const bool known = s.function == "sum" || s.function == "any" || s.function == "all";
  if (s.kind != Kind::reduce || !known || s.inputs.size() != 1 || s.outputs.empty())
    return std::nullopt;
  const Operand &in = s.inputs[0], &out = s.outputs[0];
  const Range r = range(in);
  std::uint64_t base = 0;
  auto formula = std::dynamic_pointer_cast<Formula>(
      values.promised(in.address + static_cast<std::uint64_t>(r.low),
                      static_cast<std::uint64_t>(r.high - r.low), base));
  if (!formula || count(in) <= 0 || count(out) <= 0) return std::nullopt;
  const auto element = static_cast<std::int64_t>(bits(in.dtype) / 8);
  const auto first = static_cast<std::int64_t>(in.address - base) / element;

  // Places of the reduced dimensions, relative to the first of each result.
  constexpr std::int64_t exact = 1 << 22, side = 16, longest = 1024, most_covered = 1 << 20;
  auto reduced = [&](int d) { return d >= out.rank || out.size[d] <= 1; };
  int blocks = 0;  // dimensions of a block that each result covers
  bool sampled = count(in) > exact;
  std::int64_t each = 1;
  for (int d = 0; d < in.rank; ++d) {
    if (!reduced(d)) continue;
    each *= in.size[d];
    blocks += in.size[d] > 1;
    sampled &= in.size[d] <= longest;
  }
  sampled &= blocks > 1;
  if (!sampled && each > most_covered) return std::nullopt;
  Places covered{0};
  for (int d = 0; d < in.rank; ++d) {
    const std::int64_t n = in.size[d];
    if (!reduced(d)) continue;
    const std::int64_t step = sampled ? std::max<std::int64_t>(1, n / side) : 1;
    Places next;
    for (std::int64_t i = 0; i < n; i = i + step < n || i == n - 1 ? i + step : n - 1)
      for (std::int64_t place : covered) next.push_back(place + i * (in.stride[d] / element));
    covered = std::move(next);
  }
  constexpr std::uint64_t most = std::uint64_t{1} << 27;
  if (static_cast<std::uint64_t>(count(out)) * covered.size() > most) return std::nullopt;

  Column result(static_cast<std::size_t>(count(out)));
  Places places(covered.size()), found;
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::int64_t index = static_cast<std::int64_t>(i), at = first;
    for (int d = 0; d < out.rank && d < in.rank; ++d) {
      const std::int64_t n = std::max<std::int64_t>(1, out.size[d]);
      at += index % n * (in.stride[d] / element);
      index /= n;
    }
    for (std::size_t k = 0; k < places.size(); ++k) places[k] = at + covered[k];
    if (!formula->at(places, found)) return std::nullopt;
    std::int64_t sum = 0, set = 0;
    for (std::int64_t v : found) sum += v, set += v != 0;
    const auto seen = static_cast<std::int64_t>(found.size());
    if (s.function != "sum") {
      result[i] = s.function == "any" ? set > 0 : set == seen;
    } else {
      result[i] = static_cast<Number>(sum) * static_cast<Number>(each) / static_cast<Number>(seen);
      if (sampled) result[i] = static_cast<Number>(static_cast<std::int64_t>(result[i]));
    }
  }
  return result;
}

}  // namespace maya::values
