// Numbers of streams in the recording. Records have 16 bits for them, and a program may make and
// destroy streams for as long as it runs: the number of a destroyed stream is used again, the one
// that was given back longest ago, for a stream of the same kind, so that at most work of the two
// is ordered that need not be.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace maya::session {

class StreamNumbers {
 public:
  using Kind = std::tuple<int, unsigned, int>;  // device, flags, priority
  static constexpr std::uint32_t most = 0xffff;

  // 0: there is none left.
  std::uint16_t take(const Kind& kind) {
    std::lock_guard guard(mutex_);
    auto& free = free_[kind];
    // As long as there are few, each stream has a number of its own.
    constexpr std::uint32_t few = 1024;
    if (next_ <= most && (next_ < few || free.empty())) return static_cast<std::uint16_t>(next_++);
    if (free.empty()) return 0;
    const std::uint16_t number = free.front();
    free.pop_front();
    return number;
  }
  void give_back(const Kind& kind, std::uint16_t number) {
    std::lock_guard guard(mutex_);
    free_[kind].push_back(number);
  }

 private:
  std::mutex mutex_;
  std::uint32_t next_{1};
  std::map<Kind, std::deque<std::uint16_t>> free_;
};

}  // namespace maya::session
