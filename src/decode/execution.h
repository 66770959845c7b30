// Kernels that are run on known values, one launch at a time.
//
// Serving engines compute lengths, positions and counts in small kernels of their own and read them
// back. Where the code of a kernel is at hand and what it reads is known, running it gives the
// values it writes, exactly. Whatever does not follow from known values is unknown; nothing is
// assumed.
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
};

// A decoder that can run its kernel.
class Executable {
 public:
  virtual ~Executable() = default;
  // False: what the launch writes cannot be told, and `effects` is not to be used.
  virtual bool execute(const Launch& launch, Effects& effects) const = 0;
};

}  // namespace maya::decode
