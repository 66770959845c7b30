// How busy a device of the job is, for monitors in any process (NVML, nvidia-smi): part of the
// job's file (domain.h). Time is counted in buckets, so that whoever asks sees the last second
// without having asked before.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace maya::clock {

// Shares of the last second.
struct Load {
  double busy{};    // something ran
  double memory{};  // of the memory's bandwidth
  double power{};   // of what the board may draw above its idle draw
};

class DeviceLoad {
 public:
  // Something ran, with these shares of bandwidth and power. Spans of one process come in the order
  // of their ends.
  void add(std::int64_t start, std::int64_t end, double memory, double power) {
    // What overlaps with earlier work does not make the device busier.
    start = std::max(start, busy_until_.load(std::memory_order_relaxed));
    if (end <= start) return;
    busy_until_.store(end, std::memory_order_relaxed);
    start = std::max(start, end - window);
    power_ns_.fetch_add(static_cast<std::int64_t>(static_cast<double>(end - start) * power));
    while (start < end) {
      const std::int64_t number = start / bucket, until = std::min(end, (number + 1) * bucket);
      Bucket& b = buckets_[number % count];
      if (b.number.exchange(number) != number) b.busy = b.memory = b.power = 0;
      const auto ns = static_cast<double>(until - start);
      b.busy += until - start;
      b.memory += static_cast<std::int64_t>(ns * memory);
      b.power += static_cast<std::int64_t>(ns * power);
      start = until;
    }
  }

  Load at(std::int64_t now) const {
    Load load;
    const std::int64_t last = now / bucket, whole = std::min(now, window);
    for (const Bucket& b : buckets_) {
      const std::int64_t number = b.number.load();
      if (number > last || number <= last - static_cast<std::int64_t>(count)) continue;
      load.busy += static_cast<double>(b.busy.load());
      load.memory += static_cast<double>(b.memory.load());
      load.power += static_cast<double>(b.power.load());
    }
    const auto ns = static_cast<double>(std::max<std::int64_t>(whole, bucket));
    for (double* share : {&load.busy, &load.memory, &load.power})
      *share = std::clamp(*share / ns, 0.0, 1.0);
    return load;
  }

  // Nanoseconds at full power since the job began.
  std::int64_t power_ns() const { return power_ns_.load(); }

 private:
  static constexpr std::int64_t bucket = 50'000'000, window = 1'000'000'000;
  static constexpr std::size_t count = window / bucket;
  struct Bucket {
    std::atomic<std::int64_t> number, busy, memory, power;
  };
  Bucket buckets_[count];
  std::atomic<std::int64_t> busy_until_, power_ns_;
};

}  // namespace maya::clock
