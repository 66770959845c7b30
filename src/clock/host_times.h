// Host times that all processes of a job have measured, by what was done: part of the job's file
// (domain.h).
//
// Ranks that do the same work take the same host time for it; what one of them takes longer than
// the others is this machine's doing. So what counts is found from the times of all of them, as the
// prediction does. A process may be killed at any moment: there are single words only, and a time
// that is lost or counted twice does no harm.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace maya::clock {

class HostTimes {
 public:
  // The lower sixteenth of the latest times under this key, this one included (the least of up to
  // 16). The table is full: `ns`. Layers share keys, so there are more times under one than a step
  // has ranks and repetitions, and this low a part of them is what the prediction of a recording in
  // real time finds in the least of a few steps (collate/host_times.h). With an eighth of the last
  // 32, clocks went slower once a busy machine had filled the table.
  std::uint32_t add(std::uint64_t key, std::uint32_t ns) {
    if (key == 0) key = 1;
    for (std::uint64_t i = 0; i < looks; ++i) {
      Entry& entry = entries_[(key + i) % entries];
      std::uint64_t held = entry.key.load(std::memory_order_relaxed);
      if (held == 0 && entry.key.compare_exchange_strong(held, key)) held = key;
      if (held == key) return entry.add(ns);
    }
    return ns;
  }

 private:
  static constexpr std::uint64_t entries = 1 << 16, looks = 64;
  static constexpr std::uint32_t kept = 64, part = 16;
  struct Entry {
    std::atomic<std::uint64_t> key;
    std::atomic<std::uint32_t> count, low_part;  // the latter as last found
    std::atomic<std::uint32_t> ns[kept];

    std::uint32_t add(std::uint32_t time) {
      const std::uint32_t number = count.fetch_add(1, std::memory_order_relaxed);
      ns[number % kept].store(time, std::memory_order_relaxed);
      // Once it is known well, it is looked for now and then: this happens at every launch.
      constexpr std::uint32_t every = 8;
      if (number >= kept && number % every != 0) [[likely]]
        return low_part.load(std::memory_order_relaxed);
      const std::uint32_t there = std::min(number, kept - 1) + 1;
      std::array<std::uint32_t, kept> times;
      for (std::uint32_t i = 0; i < there; ++i) {
        times[i] = ns[i].load(std::memory_order_relaxed);
        if (times[i] == 0) times[i] = time;  // another process is about to write it
      }
      const auto low = times.begin() + (there - 1) / part;
      std::nth_element(times.begin(), low, times.begin() + there);
      low_part.store(*low, std::memory_order_relaxed);
      return *low;
    }
  };
  Entry entries_[entries];
};

}  // namespace maya::clock
