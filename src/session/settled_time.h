// Host time between two pieces of work, cleared of what this machine did to it: the same rule as
// the prediction's (collate/host_times.h), as far as it can be followed while the program runs.
//
// Other processes on the same cores, cold caches and interrupts only ever add. So what a thread
// took since its last piece of work counts as a low part of the last times that the same calls
// stood before it, in any process of the job (clock/host_times.h). A long stretch that took much
// longer than the others did something else (an evaluation, a checkpoint) and stays as it is.
#pragma once

#include <array>
#include <cstdint>

#include "clock/host_times.h"

namespace maya::session {

// Of one thread.
class SettledTime {
 public:
  // A piece of work is put on the device, `what` it is, so long after the last one. What counts.
  std::int64_t settle(clock::HostTimes& times, std::uint64_t what, std::int64_t ns);
  // The thread is about to wait for another one, so long after the last piece of work. What it
  // takes from there to the next one is settled apart.
  std::int64_t settle_before_sleep(clock::HostTimes& times, std::int64_t ns);

 private:
  static constexpr std::size_t calls = 8;
  static constexpr std::int64_t long_ns = 5'000'000;
  std::int64_t settle_at(clock::HostTimes& times, std::uint64_t stretch, std::int64_t ns) const;
  std::array<std::uint64_t, calls> before_{};
  std::size_t next_{};
  bool slept_{};  // since the last piece of work
};

}  // namespace maya::session
