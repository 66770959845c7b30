#include "decode/offsets.h"

#include <algorithm>

namespace maya::decode {

bool Offsets::read(const std::byte* p, int argument_count, std::int64_t count) {
  if (!p || argument_count < 0 || argument_count > 8) return false;
  std::int32_t n = 0;
  std::memcpy(&n, p, 4);
  if (n < 0 || n > max_dims) return false;
  dims = n;
  arguments = argument_count;
  int columns = argument_count > 0 ? argument_count : 1;
  for (int i = 0; i < dims; ++i) {
    std::uint32_t divisor = 0;
    std::memcpy(&divisor, p + 4 + 12 * i, 4);
    if (divisor == 0 || divisor > 0x7fffffffu) return false;
    size[i] = divisor;
    for (int a = 0; a < argument_count; ++a) {
      std::uint32_t s = 0;
      std::memcpy(&s, p + 4 + 12 * max_dims + 4 * (columns * i + a), 4);
      stride[i][a] = s;
    }
  }
  return count < 0 || elements() == count;
}

std::int64_t Offsets::elements() const {
  std::int64_t n = 1;
  for (int i = 0; i < dims; ++i) n *= size[i];
  return n;
}

std::int64_t Offsets::distinct(int argument) const {
  std::int64_t n = 1;
  for (int i = 0; i < dims; ++i)
    if (stride[i][argument] != 0) n *= size[i];
  return n;
}

std::int64_t Offsets::span(int argument, std::int64_t element_bytes, bool strides_in_bytes) const {
  std::int64_t last = 0;
  for (int i = 0; i < dims; ++i) last += (size[i] - 1) * stride[i][argument];
  return (strides_in_bytes ? last : last * element_bytes) + element_bytes;
}

std::uint64_t Offsets::hash(const std::byte* p, int argument_count) {
  std::int32_t n = 0;
  std::memcpy(&n, p, 4);
  n = std::clamp(n, 0, max_dims);
  int columns = argument_count > 0 ? argument_count : 1;
  std::uint64_t h = static_cast<std::uint64_t>(n) + 0x51ED270B;
  for (int i = 0; i < n; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, p + 4 + 12 * i, 4);
    h = mix(h, word);
    for (int a = 0; a < columns; ++a) {
      std::memcpy(&word, p + 4 + 12 * max_dims + 4 * (columns * i + a), 4);
      h = mix(h, word);
    }
  }
  return h;
}

}  // namespace maya::decode
