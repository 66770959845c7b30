// ATen's OffsetCalculator as it lies in kernel arguments: int dims; {divisor, m1, shift}[25];
// uint32 strides[25][arguments]. Unchanged from torch 1.5 on; checked against the element count.
#pragma once

#include <cstdint>

#include "decode/rule.h"

namespace maya::decode {

struct Offsets {
  static constexpr int max_dims = 25;
  static constexpr std::size_t bytes(int arguments) {
    return 4 + 12 * max_dims +
           4 * max_dims * static_cast<std::size_t>(arguments > 0 ? arguments : 1);
  }

  int dims{};
  int arguments{};
  std::int64_t size[max_dims]{};
  std::int64_t stride[max_dims][8]{};  // as the kernel keeps them: bytes or elements

  // False unless the sizes multiply to `elements` (< 0: any count).
  bool read(const std::byte* p, int argument_count, std::int64_t elements);

  std::int64_t elements() const;
  // Distinct elements operand `argument` touches: broadcast dimensions count once.
  std::int64_t distinct(int argument) const;
  // From the first to the last touched byte, given the element's size.
  std::int64_t span(int argument, std::int64_t element_bytes, bool strides_in_bytes) const;

  // Hash of sizes and strides straight from the argument bytes.
  static std::uint64_t hash(const std::byte* p, int argument_count);
};

}  // namespace maya::decode
