#include "decode/ptx_floats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "decode/ptx_opcode.h"

namespace maya::decode::ptx {
namespace {

constexpr std::string_view comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
constexpr std::string_view or_unordered[] = {"equ", "neu", "ltu", "leu", "gtu", "geu"};

bool among(std::string_view word, const auto& words) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool scalar(std::string_view word) {
  static constexpr std::string_view types[] = {"f32", "f64", "s8",  "s16", "s32",
                                               "s64", "u8",  "u16", "u32", "u64"};
  return among(word, types);
}

bool wide_enough(const Type& type) { return type.is_float && type.bytes >= 4 && type.bytes <= 8; }

template <class T>
T number(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
Value result(T x) {
  Value v;
  if (std::isnan(x)) return v;  // which one, the hardware decides
  std::memcpy(&v.bits, &x, sizeof x);
  v.known = true;
  return v;
}

// Zeros are ordered by their sign here.
template <class T>
T lesser(T x, T y) {
  if (x == y) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}

template <class T>
Value compare(const Instruction& in, T x, T y) {
  Value v;
  v.known = true;
  if (std::isnan(x) || std::isnan(y)) {
    v.bits = in.floats == Float::compare_or_unordered;
    return v;
  }
  const bool results[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
  v.bits = results[in.compare];
  return v;
}

template <class T>
Value arithmetic(const Instruction& in, const Value* a) {
  const T x = number<T>(a[0].bits), y = number<T>(a[1].bits), z = number<T>(a[2].bits);
  switch (in.floats) {
    case Float::add:
      return result<T>(x + y);
    case Float::sub:
      return result<T>(x - y);
    case Float::mul:
      return result<T>(x * y);
    case Float::div:
      return result<T>(x / y);
    case Float::fma:
      return result<T>(std::fma(x, y, z));
    case Float::neg:
      return result<T>(-x);
    case Float::abs:
      return result<T>(std::fabs(x));
    case Float::min:
    case Float::max:
      if (std::isnan(x) || std::isnan(y)) return result<T>(std::isnan(x) ? y : x);
      return result<T>(in.floats == Float::min ? lesser(x, y) : -lesser<T>(-x, -y));
    default:
      return compare<T>(in, x, y);
  }
}

// Towards zero, and to the nearest that the type has.
Value to_integer(const Type& type, double x) {
  Value v;
  v.known = true;
  if (std::isnan(x)) return v;
  const int bits = 8 * type.bytes;
  const double above = std::ldexp(1.0, type.is_signed ? bits - 1 : bits);
  if (type.is_signed) {
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
    v.bits = static_cast<std::uint64_t>(x >= above    ? most
                                        : x <= -above ? -most - 1
                                                      : static_cast<std::int64_t>(x));
  } else {
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
    v.bits = x >= above ? most : x <= 0 ? 0 : static_cast<std::uint64_t>(x);
  }
  return v;
}

template <class T>
Value rounded(const Type& from, std::uint64_t bits) {
  if (from.is_signed) return result<T>(static_cast<T>(Thread::extend(bits, from.bytes)));
  return result<T>(static_cast<T>(Thread::mask(bits, from.bytes)));
}

Value convert(const Instruction& in, std::uint64_t bits) {
  if (in.from.is_float) {
    const double x = in.from.bytes == 4 ? number<float>(bits) : number<double>(bits);
    if (!in.type.is_float) return to_integer(in.type, x);
    return in.type.bytes == 4 ? result<float>(static_cast<float>(x)) : result<double>(x);
  }
  return in.type.bytes == 4 ? rounded<float>(in.from, bits) : rounded<double>(in.from, bits);
}

}  // namespace

Float float_of(std::string_view name, const std::vector<std::string_view>& modifiers,
               const Instruction& in) {
  const auto has = [&](std::string_view word) { return among(word, modifiers); };
  for (std::string_view m : modifiers)
    if (!scalar(m) && m != "rn" && m != "rzi" && !among(m, comparisons) && !among(m, or_unordered))
      return Float::none;
  if (name == "cvt") {
    const bool number = wide_enough(in.type), of_number = wide_enough(in.from);
    if (number && of_number) return has("rzi") ? Float::none : Float::convert;
    if (number) return has("rn") && !in.from.is_float ? Float::convert : Float::none;
    return of_number && has("rzi") ? Float::convert : Float::none;
  }
  if (!wide_enough(in.type) || has("rzi")) return Float::none;
  if (name == "setp") {
    if (in.argument_count != 3 || in.arguments[0].second >= 0) return Float::none;
    return modifiers.empty() || !among(modifiers[0], or_unordered) ? Float::compare
                                                                   : Float::compare_or_unordered;
  }
  static constexpr struct {
    std::string_view name;
    Float what;
    int arguments;
  } known[] = {{"add", Float::add, 3}, {"sub", Float::sub, 3}, {"mul", Float::mul, 3},
               {"fma", Float::fma, 4}, {"min", Float::min, 3}, {"max", Float::max, 3},
               {"neg", Float::neg, 2}, {"abs", Float::abs, 2}};
  for (const auto& k : known)
    if (k.name == name && k.arguments == in.argument_count) return k.what;
  return name == "div" && has("rn") && in.argument_count == 3 ? Float::div : Float::none;
}

Value float_result(const Instruction& in, const Value* arguments) {
  for (int i = 0; i + 1 < in.argument_count; ++i)
    if (!arguments[i].known) return {};
  if (in.floats == Float::convert) return convert(in, arguments[0].bits);
  return in.type.bytes == 4 ? arithmetic<float>(in, arguments) : arithmetic<double>(in, arguments);
}

}  // namespace maya::decode::ptx
