#include "values/compute.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "values/assumptions.h"
#include "values/formula.h"
#include "values/functions.h"
#include "values/moves.h"
#include "values/operand.h"

namespace maya::values {
namespace {

// The index of the output element that an input element falls on: same rank, zero stride where
// reduced.
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

std::optional<Column> evaluate(const Semantics& s, const std::vector<Column>& in) {
  using Kind = Semantics::Kind;
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
    case Kind::literal:
      if (s.literal.size() != n) return std::nullopt;
      std::copy(s.literal.begin(), s.literal.end(), result.begin());
      return result;
    case Kind::arange:
      for (std::size_t i = 0; i < n; ++i) result[i] = s.scalar + static_cast<Number>(i) * s.scalar2;
      return result;
    case Kind::random:
      for (std::size_t i = 0; i < n; ++i) {
        std::uint64_t x = s.seed + (i + 1) * 0x9e3779b97f4a7c15ULL;  // splitmix64
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
        x ^= x >> 31;
        result[i] = static_cast<Number>(
            s.from + static_cast<std::int64_t>(x % static_cast<std::uint64_t>(s.k)));
      }
      return result;
    case Kind::copy_cast:
      if (in.empty()) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) result[i] = input(0, i);
      return result;
    case Kind::unary: {
      if (in.empty()) return std::nullopt;
      bool truth = s.function == "not" && s.inputs[0].dtype == DType::boolean;
      const std::string function = truth ? "logical_not" : s.function;
      for (std::size_t i = 0; i < n; ++i) {
        auto v = function == "clamp"
                     ? std::min<Number>(std::max<Number>(input(0, i), s.scalar), s.scalar2)
                     : apply(function, input(0, i));
        if (!v) v = apply(s.function, input(0, i), s.scalar);
        if (!v) return std::nullopt;
        result[i] = *v;
      }
      return result;
    }
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
    case Kind::triangle: {
      if (in.empty() || out.rank < 2) return std::nullopt;
      auto rows = std::max<std::int64_t>(1, out.size[1]),
           cols = std::max<std::int64_t>(1, out.size[0]);
      for (std::size_t i = 0; i < n; ++i) {
        auto at = static_cast<std::int64_t>(i), above = at % cols - at / cols % rows;
        bool kept = s.function == "upper" ? above >= s.k : above <= s.k;
        result[i] = kept ? input(0, i) : Number{0};
      }
      return result;
    }
    case Kind::search: {
      if (in.size() < 2 || in[0].size() < n || s.k < 0) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) {
        std::int64_t row = s.from > 0 ? static_cast<std::int64_t>(i) / s.from : 0;
        if ((row + 1) * s.k > static_cast<std::int64_t>(in[1].size())) return std::nullopt;
        auto begin = in[1].begin() + row * s.k, end = begin + s.k;
        auto found = s.function == "right" ? std::upper_bound(begin, end, in[0][i])
                                           : std::lower_bound(begin, end, in[0][i]);
        result[i] = static_cast<Number>(found - begin);
      }
      return result;
    }
    case Kind::where:
      if (s.function == "masked_fill" && in.size() == 2) {
        for (std::size_t i = 0; i < n; ++i)
          result[i] = input(1, i) != 0 ? static_cast<Number>(s.scalar) : input(0, i);
        return result;
      }
      if (in.size() < 3) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i) result[i] = input(0, i) != 0 ? input(1, i) : input(2, i);
      return result;
    case Kind::reduce: {
      if (in.empty() || n == 0) return std::nullopt;
      std::vector<bool> started(n);
      for (std::size_t i = 0; i < in[0].size(); ++i) {
        auto at =
            static_cast<std::size_t>(reduced_index(s.inputs[0], out, static_cast<std::int64_t>(i)));
        if (at >= n) return std::nullopt;
        bool logical = s.function == "any" || s.function == "all";
        Number v = logical ? in[0][i] != 0 : in[0][i];
        auto folded = started[at] ? fold(s.function, result[at], v) : std::optional<Number>(v);
        if (!folded) return std::nullopt;
        result[at] = *folded;
        started[at] = true;
      }
      if (s.function == "mean")
        for (auto& v : result) v /= static_cast<Number>(in[0].size()) / static_cast<Number>(n);
      return result;
    }
    case Kind::scan: {
      if (in.empty() || in[0].size() < n) return std::nullopt;
      std::int64_t row = s.k > 0 ? s.k : static_cast<std::int64_t>(n);
      if (s.function == "exclusive_sum") {
        for (std::size_t i = 0; i < n; ++i)
          result[i] =
              static_cast<std::int64_t>(i) % row == 0 ? Number{0} : result[i - 1] + in[0][i - 1];
        return result;
      }
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
      if (in.empty() || n == 0) return std::nullopt;
      for (auto v :
           in[0]) {  // bins of equal width from scalar to scalar2, which belongs to the last
        if (v < s.scalar || v > s.scalar2 || s.scalar2 <= s.scalar) continue;
        auto bin = static_cast<std::size_t>((v - s.scalar) * static_cast<Number>(n) /
                                            (s.scalar2 - s.scalar));
        result[std::min(bin, n - 1)] += 1;
      }
      return result;
    case Kind::nonzero_count:
      // Partial counts, one per block, are summed by the next launch: the first carries them all.
      if (in.empty() || n == 0) return std::nullopt;
      result[0] = static_cast<Number>(
          std::count_if(in[0].begin(), in[0].end(), [](Number v) { return v != 0; }));
      return result;
    default:
      return std::nullopt;
  }
}

// Sorting known keys gives keys and their order; choosing from unknown scores is dealt round robin,
// so that every expert gets the same number of tokens.
void sort_or_choose(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  auto keys = s.inputs.empty() ? std::nullopt : load(s.inputs[0], values, limit);
  std::int64_t row = s.inputs.empty() || s.inputs[0].rank == 0 ? 0 : s.inputs[0].size[0];
  std::int64_t k = s.k > 0 ? s.k : row;
  auto emit = [&](std::size_t output, const Column& column) {
    if (output < s.outputs.size()) store(s.outputs[output], column, values, limit);
  };
  if (!keys || row <= 0) {
    if (s.outputs.empty()) return;
    forget(s.outputs[0], values);
    if (s.outputs.size() < 2 || row <= 0) return;
    // Sorting by unknown keys: any order may be right, so what is carried along keeps its own.
    if (s.kind == Semantics::Kind::sort && s.inputs.size() > 1) {
      auto carried = load(s.inputs[1], values, limit);
      return carried ? emit(1, *carried) : forget(s.outputs[1], values);
    }
    auto n = static_cast<std::size_t>(count(s.outputs[1]));
    if (n > limit) return forget(s.outputs[1], values);
    Column chosen(n);
    for (std::size_t i = 0; i < n; ++i)
      chosen[i] = static_cast<Number>(static_cast<std::int64_t>(i) % row);
    return emit(1, chosen);
  }
  Column sorted, order;
  bool descending =
      s.kind == Semantics::Kind::topk ? s.function != "smallest" : s.function == "descending";
  for (std::size_t begin = 0; begin + static_cast<std::size_t>(row) <= keys->size();
       begin += static_cast<std::size_t>(row)) {
    std::vector<std::size_t> index(static_cast<std::size_t>(row));
    std::iota(index.begin(), index.end(), 0);
    std::stable_sort(index.begin(), index.end(), [&](std::size_t a, std::size_t b) {
      return descending ? (*keys)[begin + a] > (*keys)[begin + b]
                        : (*keys)[begin + a] < (*keys)[begin + b];
    });
    for (std::int64_t i = 0; i < k && i < row; ++i) {
      sorted.push_back((*keys)[begin + index[static_cast<std::size_t>(i)]]);
      order.push_back(static_cast<Number>(index[static_cast<std::size_t>(i)]));
    }
  }
  // Values carried along (sort by key) follow the order of their keys.
  if (s.inputs.size() > 1) {
    if (auto carried = load(s.inputs[1], values, limit);
        carried && carried->size() == keys->size()) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        std::size_t begin = i / static_cast<std::size_t>(k) * static_cast<std::size_t>(row);
        order[i] = (*carried)[begin + static_cast<std::size_t>(order[i])];
      }
    } else {
      emit(0, sorted);
      if (s.outputs.size() > 1) forget(s.outputs[1], values);
      return;
    }
  }
  emit(0, sorted);
  emit(1, order);
}

// A copy that changes nothing moves bytes, known or not, however many.
bool plain_copy(const Semantics& s) {
  if (s.kind != Semantics::Kind::copy_cast || s.inputs.size() != 1 || s.outputs.size() != 1)
    return false;
  const Operand &in = s.inputs[0], &out = s.outputs[0];
  return in.dtype == out.dtype && bits(in.dtype) % 8 == 0 && count(in) == count(out) && dense(in) &&
         dense(out);
}

// See KnownBytes::suppose: nothing for kernels, a plausible number for a host that looks.
std::optional<Number> supposed(const Semantics& s, KnownBytes& values) {
  using Kind = Semantics::Kind;
  if (s.kind == Kind::suppose) return s.scalar;
  if (s.inputs.size() != 1) return std::nullopt;
  if (s.kind == Kind::unary && s.function == "sigmoid") return Number{0.5};
  if (s.kind != Kind::copy_cast || count(s.inputs[0]) <= 0) return std::nullopt;
  const Operand& in = s.inputs[0];
  Range r = range(in);
  std::uint64_t bytes = 0;
  const void* pattern = values.supposed(in.address + static_cast<std::uint64_t>(r.low),
                                        static_cast<std::uint64_t>(r.high - r.low), bytes);
  if (pattern == nullptr || bytes * 8 != static_cast<std::uint64_t>(bits(in.dtype)))
    return std::nullopt;
  return read(in.dtype, static_cast<const char*>(pattern));
}

bool suppose(const Operand& out, Number value, KnownBytes& values) {
  char pattern[16];
  if (is_integer(out.dtype) || bits(out.dtype) > 64 || !dense(out) || count(out) <= 0 ||
      count(out) > most_supposed || !write(out.dtype, pattern, value))
    return false;
  const auto element = static_cast<std::uint64_t>(bits(out.dtype) / 8);
  values.suppose(out.address, pattern, element, static_cast<std::uint64_t>(count(out)) * element);
  return true;
}

}  // namespace

Answer compute(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  using Kind = Semantics::Kind;
  for (const auto& part : s.parts) compute(part, values, limit);
  if (plain_copy(s)) {
    const auto bytes =
        static_cast<std::uint64_t>(count(s.outputs[0]) * bits(s.outputs[0].dtype) / 8);
    values.copy(s.outputs[0].address, s.inputs[0].address, bytes);
    return Answer::computed;
  }
  if (move(s, values, limit)) return Answer::computed;
  if (s.kind == Kind::sort || s.kind == Kind::topk) {
    sort_or_choose(s, values, limit);
    return Answer::computed;
  }
  std::vector<Column> in;
  auto bytes = s.outputs.empty() ? 0 : count(s.outputs[0]) * bits(s.outputs[0].dtype) / 8;
  bool known = !s.outputs.empty() && bytes <= static_cast<std::int64_t>(limit);
  for (const auto& operand : s.inputs) {
    if (!known) break;
    auto column = load(operand, values, limit);
    if (column)
      in.push_back(std::move(*column));
    else
      known = false;
  }
  auto result = known ? evaluate(s, in) : std::nullopt;
  if (!result) result = reduce_formula(s, values);
  if (!result && bytes > static_cast<std::int64_t>(limit))
    if (auto formula = Formula::of(s, values, limit)) {
      values.promise(s.outputs[0].address, static_cast<std::uint64_t>(bytes), std::move(formula));
      return Answer::computed;
    }
  constexpr std::int64_t most_assumed = 1 << 16;
  if (!result && !s.outputs.empty() && bytes <= most_assumed)
    if (auto value = assumed(s, values, limit))
      result = Column(static_cast<std::size_t>(count(s.outputs[0])), *value);
  // An unknown mask: see list() in moves.cpp, which writes what is counted here.
  bool whole = s.kind == Kind::nonzero_count && !known && !s.outputs.empty() && !s.inputs.empty() &&
               bytes <= static_cast<std::int64_t>(limit);
  if (whole) {
    result = Column(static_cast<std::size_t>(count(s.outputs[0])));
    if (!result->empty()) result->front() = static_cast<Number>(count(s.inputs[0]));
  }
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    if (i == 0 && result) {
      store(s.outputs[0], *result, values, limit);
      continue;
    }
    auto value = i == 0 ? supposed(s, values) : std::nullopt;
    if (!value || !suppose(s.outputs[0], *value, values)) forget(s.outputs[i], values);
  }
  return whole ? Answer::whole_mask : Answer::computed;
}

}  // namespace maya::values
