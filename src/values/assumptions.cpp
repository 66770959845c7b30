#include "values/assumptions.h"

#include <algorithm>

#include "values/functions.h"

namespace maya::values {
namespace {

// Less than what is called near (1e-6: do these sum to one?), more than what is called nothing
// (1e-11: does this window vanish?).
constexpr Number small = 1e-7L;

bool same_elements(const Operand& a, const Operand& b) {
  if (a.address != b.address || a.rank != b.rank || a.dtype != b.dtype) return false;
  return std::equal(a.size, a.size + a.rank, b.size) &&
         std::equal(a.stride, a.stride + a.rank, b.stride);
}

// The one value that all elements have.
std::optional<Number> uniform(const Column& column) {
  if (column.empty()) return std::nullopt;
  Number first = column.front();
  bool all = std::all_of(column.begin(), column.end(), [&](Number v) { return v == first; });
  return all ? std::optional<Number>(first) : std::nullopt;
}

std::optional<Number> compared(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  if (s.inputs.empty()) return std::nullopt;
  if (s.inputs.size() > 1 && same_elements(s.inputs[0], s.inputs[1]))
    return compare(s.function, small, small);
  // A mask of known and unknown parts is no number to assume; an integer may be anything.
  std::optional<Number> sides[2]{std::nullopt, static_cast<Number>(s.scalar)};
  int unknown = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(s.inputs.size(), 2); ++i) {
    auto column = load(s.inputs[i], values, limit);
    sides[i] = column ? uniform(*column) : std::nullopt;
    if (column && !sides[i]) return std::nullopt;
    if (!column && is_integer(s.inputs[i].dtype)) return std::nullopt;
    unknown += !column;
  }
  if (unknown != 1) return std::nullopt;
  return compare(s.function, sides[0].value_or(small), sides[1].value_or(small));
}

}  // namespace

std::optional<Number> assumed(const Semantics& s, KnownBytes& values, std::uint64_t limit) {
  using Kind = Semantics::Kind;
  if (s.outputs.empty()) return std::nullopt;
  // An unknown mask chooses every place (see list() in moves.cpp), also where it is counted.
  if (s.inputs.size() == 1 && s.inputs[0].dtype == DType::boolean) {
    if (s.kind == Kind::copy_cast && s.outputs[0].dtype != DType::boolean) return 1;
    if (s.kind == Kind::reduce && s.function == "sum" && count(s.outputs[0]) > 0)
      return static_cast<Number>(count(s.inputs[0])) / static_cast<Number>(count(s.outputs[0]));
  }
  if (s.outputs[0].dtype != DType::boolean) return std::nullopt;
  if (s.kind == Kind::reduce) {
    if (s.function == "all") return 1;
    if (s.function == "any") return 0;
  }
  if (s.kind == Kind::unary) {
    if (s.function == "isnan" || s.function == "isinf") return 0;
    if (s.function == "isfinite") return 1;
  }
  return s.kind == Kind::compare ? compared(s, values, limit) : std::nullopt;
}

}  // namespace maya::values
