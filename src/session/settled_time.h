// Host time between two pieces of work, cleared of what this machine did to it: the same rule as
// the prediction's (collate/host_times.h), as far as it can be followed while the program runs.
//
// Other processes on the same cores, cold caches and interrupts only ever add. So what a thread
// took since its last piece of work counts as the least of the last eight times that the same calls
// stood before it. Long stretches are the program's own and stay as they are.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

namespace maya::session {

// Of one thread.
class SettledTime {
 public:
  // A piece of work is put on the device, `what` it is, so long after the last one. What counts.
  std::int64_t settle(std::uint64_t what, std::int64_t ns);

 private:
  static constexpr std::size_t calls = 8, times = 8;
  static constexpr std::int64_t longest_ns = 5'000'000;
  struct Place {
    std::array<std::int64_t, times> ns{};
    std::uint32_t count{};
  };
  std::array<std::uint64_t, calls> before_{};
  std::size_t next_{};
  std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace maya::session
