// Launches that were run on known values before, and need not be run again.
//
// Autotuners launch one kernel hundreds of times with the same arguments, and running it each time
// would take minutes. A launch with the same geometry and arguments that would read the same bytes
// writes the same bytes: what it wrote is kept and given again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "decode/execution.h"

namespace maya::decode {

// Of its geometry and arguments; not 0.
std::uint64_t hash_of_launch(const Launch& launch);

class Repeats {
 public:
  // What an equal launch wrote when it was run. Null: none was, or what it read has changed.
  const Effects* find(const Launch& launch) const;
  // Keeps the effects of a launch that was worth the trouble; must be called before its effects
  // are applied. Those of the oldest launch give way.
  void keep(const Launch& launch, const Effects& effects);

 private:
  static constexpr std::size_t most = 4;                // launches
  static constexpr std::uint64_t worthwhile = 100'000;  // instructions
  static constexpr std::size_t most_reads = 1 << 16;    // lines that are compared
  struct Kept {
    std::uint64_t launch{}, read{};  // hashes of the arguments, and of what it read
    Effects effects;
  };
  std::vector<Kept> kept_;
  std::size_t next_{};
};

}  // namespace maya::decode
