#include "values/functions.h"

#include <algorithm>
#include <cmath>

namespace maya::values {

std::optional<bool> compare(const std::string& f, Number a, Number b) {
  if (f == "eq") return a == b;
  if (f == "ne") return a != b;
  if (f == "lt") return a < b;
  if (f == "le") return a <= b;
  if (f == "gt") return a > b;
  if (f == "ge") return a >= b;
  return std::nullopt;
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
  if (f == "pow") return std::pow(a, b);
  if (f == "fmod") return b == 0 ? std::optional<Number>() : std::fmod(a, b);
  if (f == "fmax") return std::fmax(a, b);
  if (f == "fmin") return std::fmin(a, b);
  if (f == "atan2") return std::atan2(a, b);
  if (f == "hypot") return std::hypot(a, b);
  if (f == "copysign") return std::copysign(a, b);
  if (auto verdict = compare(f, a, b)) return *verdict;
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
  if (f == "square") return a * a;
  if (f == "cube") return a * a * a;
  if (f == "sqrt") return a < 0 ? std::optional<Number>() : std::sqrt(a);
  if (f == "rsqrt") return a <= 0 ? std::optional<Number>() : 1 / std::sqrt(a);
  if (f == "reciprocal") return a == 0 ? std::optional<Number>() : 1 / a;
  if (f == "exp") return std::exp(a);
  if (f == "sigmoid") return 1 / (1 + std::exp(-a));
  if (f == "log") return a <= 0 ? std::optional<Number>() : std::log(a);
  if (f == "log2") return a <= 0 ? std::optional<Number>() : std::log2(a);
  if (f == "round") return std::nearbyint(a);
  if (f == "trunc") return std::trunc(a);
  if (f == "abs") return std::fabs(a);
  if (f == "not") return static_cast<Number>(~static_cast<std::int64_t>(a));
  if (f == "logical_not") return a == 0;
  if (f == "identity" || f.empty()) return a;
  if (f == "sign") return (a > 0) - (a < 0);
  if (f == "ceil") return std::ceil(a);
  if (f == "floor") return std::floor(a);
  if (f == "isnan") return std::isnan(a);
  if (f == "isinf") return std::isinf(a);
  // What schedules, positions and widths of layers are computed with.
  if (f == "exp2") return std::exp2(a);
  if (f == "expm1") return std::expm1(a);
  if (f == "log10") return std::log10(a);
  if (f == "log1p") return std::log1p(a);
  if (f == "sin") return std::sin(a);
  if (f == "cos") return std::cos(a);
  if (f == "tan") return std::tan(a);
  if (f == "asin") return std::asin(a);
  if (f == "acos") return std::acos(a);
  if (f == "atan") return std::atan(a);
  if (f == "sinh") return std::sinh(a);
  if (f == "cosh") return std::cosh(a);
  if (f == "tanh") return std::tanh(a);
  if (f == "erf") return std::erf(a);
  if (f == "lgamma") return std::lgamma(a);
  if (f == "frac") return a - std::trunc(a);
  if (f == "silu") return a / (1 + std::exp(-a));
  return std::nullopt;
}

std::optional<Number> fold(const std::string& f, Number so_far, Number element) {
  if (f == "sum" || f == "mean") return so_far + element;
  if (f == "product") return so_far * element;
  if (f == "max") return std::max(so_far, element);
  if (f == "min") return std::min(so_far, element);
  if (f == "any") return so_far != 0 || element != 0;
  if (f == "all") return so_far != 0 && element != 0;
  return std::nullopt;
}

}  // namespace maya::values
