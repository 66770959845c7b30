// Kernels that are run on known values, one launch at a time.
//
// Serving engines compute lengths, positions and counts in small kernels of their own and read them
// back. Where the code of a kernel is at hand and what it reads is known, running it gives the
// values it writes, exactly. Whatever does not follow from known values is unknown. Nothing is
// assumed, but for one thing, which is said: see Effects::assumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "decode/decode.h"

namespace maya::decode {

// What a launch wrote.
struct Effects {
  struct Range {
    std::uint64_t address{}, bytes{};
    bool known{};
    std::size_t data{};  // known: where its bytes begin in `data`
  };
  std::vector<Range> ranges;
  std::vector<std::byte> data;
  // Something was written somewhere behind these addresses.
  std::vector<std::uint64_t> behind;
  std::uint64_t steps{};  // instructions that were run
  // Lines of memory whose bytes before the launch were looked at, in order; whether the effects
  // follow from the arguments and those bytes alone.
  static constexpr std::uint64_t line_bytes = 64;
  std::vector<std::uint64_t> lines_read;
  // Wider areas of memory that it read from and in which nothing was known, in order.
  static constexpr std::uint64_t area_bytes = 1 << 21;
  std::vector<std::uint64_t> unknown_areas;
  bool repeatable{};
  // Numbers that nobody computed steered it and were taken to differ from what they are compared
  // with.
  bool assumed{};
};

// A decoder that can run its kernel.
class Executable {
 public:
  virtual ~Executable() = default;
  // Null: what the launch writes cannot be told. Else its effects: `space`, or those of an equal
  // launch before, which are valid until the next call.
  virtual const Effects* execute(const Launch& launch, Effects& space) const = 0;
};

}  // namespace maya::decode
