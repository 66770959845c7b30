#include "values/operand.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace maya::values {
namespace {

float half_to_float(std::uint16_t h) {
  int exponent = (h >> 10) & 31;
  float mantissa = static_cast<float>(h & 1023);
  float value = exponent == 0    ? std::ldexp(mantissa, -24)
                : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                 : std::ldexp(mantissa + 1024, exponent - 25);
  return h & 0x8000 ? -value : value;
}

std::uint16_t float_to_half(float f) {
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(f)) return sign | 0x7e00;
  float a = std::fabs(f);
  if (a >= 65520.0f) return sign | 0x7c00;
  if (a < std::ldexp(1.0f, -14))
    return sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(a, 24)));
  int exponent = std::ilogb(a);
  auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(a, 10 - exponent)));
  return sign | static_cast<std::uint16_t>(((exponent + 15) << 10) + (mantissa - 1024));
}

// Calls `use` with a value of the type that C++ has for the elements, if it has one.
template <class Use>
bool native(DType type, Use&& use) {
  switch (type) {
    case DType::i64:
      return use(std::int64_t{}), true;
    case DType::i32:
      return use(std::int32_t{}), true;
    case DType::i16:
      return use(std::int16_t{}), true;
    case DType::i8:
      return use(std::int8_t{}), true;
    case DType::u8:
      return use(std::uint8_t{}), true;
    case DType::f64:
      return use(double{}), true;
    case DType::f32:
    case DType::tf32:
      return use(float{}), true;
    default:
      return false;
  }
}

}  // namespace

std::optional<Number> read(DType type, const char* p) {
  Number number{};
  if (native(type, [&](auto v) {
        std::memcpy(&v, p, sizeof v);
        number = static_cast<Number>(v);
      }))
    return number;
  switch (type) {
    case DType::boolean:
      return *p != 0 ? 1 : 0;
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
    default:
      return std::nullopt;
  }
}

bool write(DType type, char* p, Number value) {
  if (native(type, [&](auto v) {
        if constexpr (std::is_integral_v<decltype(v)>)
          v = static_cast<decltype(v)>(static_cast<std::int64_t>(value));
        else
          v = static_cast<decltype(v)>(value);
        std::memcpy(p, &v, sizeof v);
      }))
    return true;
  switch (type) {
    case DType::boolean:
      return *p = value != 0, true;
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
    default:
      return false;
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

Range range(const Operand& o) {
  Range r;
  for (int i = 0; i < o.rank; ++i)
    if (o.size[i] > 1) (o.stride[i] > 0 ? r.high : r.low) += (o.size[i] - 1) * o.stride[i];
  r.high += std::max(bits(o.dtype) / 8, 1);
  return r;
}

bool dense(const Operand& o) {
  std::int64_t next = bits(o.dtype) / 8;
  for (int d = 0; d < o.rank; ++d) {
    if (o.size[d] != 1 && o.stride[d] != next) return false;
    next *= o.size[d];
  }
  return true;
}

std::optional<Column> load(const Operand& o, KnownBytes& values, std::uint64_t limit) {
  std::int64_t n = count(o);
  int element = bits(o.dtype) / 8;
  if (n <= 0 || element == 0 || n * element > static_cast<std::int64_t>(limit)) return std::nullopt;
  Range r = range(o);
  const auto* whole = static_cast<const char*>(values.known(
      o.address + static_cast<std::uint64_t>(r.low), static_cast<std::uint64_t>(r.high - r.low)));
  // Mostly the first element says that nothing is known (the logits of a model, 80 MB as numbers).
  Column out;
  if (whole != nullptr) out.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = offset(o, i);
    // Gaps between the elements need not be known.
    const char* p =
        whole != nullptr
            ? whole + (at - r.low)
            : static_cast<const char*>(values.known(o.address + static_cast<std::uint64_t>(at),
                                                    static_cast<std::uint64_t>(element)));
    if (p == nullptr) return std::nullopt;
    auto v = read(o.dtype, p);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

void forget(const Operand& o, KnownBytes& values) {
  if (count(o) <= 0) return;
  Range r = range(o);
  values.forget(o.address + static_cast<std::uint64_t>(r.low),
                static_cast<std::uint64_t>(r.high - r.low));
}

void store(const Operand& o, const Column& data, KnownBytes& values, std::uint64_t limit) {
  std::int64_t n = count(o);
  int element = bits(o.dtype) / 8;
  if (element == 0 || n * element > static_cast<std::int64_t>(limit) ||
      static_cast<std::int64_t>(data.size()) < n)
    return forget(o, values);
  Range r = range(o);
  std::vector<char> one(static_cast<std::size_t>(element));
  bool dense = r.low == 0 && r.high == n * element;
  std::vector<char> all(dense ? static_cast<std::size_t>(r.high) : 0);
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

}  // namespace maya::values
