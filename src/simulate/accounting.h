// Sums up the time of a class by kind of activity, with a snapshot at each step boundary.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "simulate/cause.h"
#include "simulate/program.h"

namespace maya::simulate {

class Accounting {
 public:
  // The last two: communication has started, but all of it is waiting for partners.
  enum Activity : unsigned {
    compute = 1,
    communication = 2,
    copy = 4,
    message_wait = 8,
    collective_wait = 16
  };
  static constexpr unsigned sets = 32;
  struct Sums {
    std::array<std::int64_t, sets> by_activity{};  // index: set of activities
    std::int64_t host_bound{};
  };
  struct Boundary {
    std::uint32_t missing{};
    std::int64_t time{};
    Cause cause;
    bool closed{};
    Sums sums;
  };

  explicit Accounting(const std::vector<StepProgram>& steps) {
    for (const StepProgram& step : steps) {
      Boundary b;
      b.missing = step.tickets + 1;
      boundaries_.push_back(b);
    }
    for (std::uint32_t k = 0; k < steps.size(); ++k)
      if (steps[k].host == none) arrive(k, 0, {});
  }

  // One more part of boundary `k` is complete. The times of successive boundaries never decrease.
  void arrive(std::uint32_t k, std::int64_t time, Cause cause) {
    Boundary& b = boundaries_[k];
    if (time >= b.time) b.time = time, b.cause = cause;
    --b.missing;
    while (known_ < boundaries_.size() && boundaries_[known_].missing == 0) {
      if (known_ > 0 && boundaries_[known_].time < boundaries_[known_ - 1].time) {
        boundaries_[known_].time = boundaries_[known_ - 1].time;
        boundaries_[known_].cause = boundaries_[known_ - 1].cause;
      }
      ++known_;
    }
  }

  // Adds the time up to `now` to the current set of activities.
  void advance(std::int64_t now) {
    while (closed_ < known_ && boundaries_[closed_].time <= now) {
      Boundary& b = boundaries_[closed_++];
      spend(b.time);
      b.sums = sums_;
      b.closed = true;
    }
    spend(now);
  }
  void set(unsigned activity) {
    if (activity == 0 && activity_ != 0) idle_since_ = last_;
    activity_ = activity;
  }
  // Work starts whose dependencies were complete before the host issued it.
  void start_after_host(std::int64_t ready, std::int64_t issue) {
    if (activity_ == 0 && issue > std::max(ready, idle_since_))
      sums_.host_bound += issue - std::max(ready, idle_since_);
  }

  const std::vector<Boundary>& boundaries() const { return boundaries_; }
  void finish() {
    for (std::size_t k = closed_; k < known_; ++k) advance(std::max(last_, boundaries_[k].time));
  }

 private:
  void spend(std::int64_t until) {
    if (until <= last_) return;
    sums_.by_activity[activity_] += until - last_;
    last_ = until;
  }

  std::vector<Boundary> boundaries_;
  std::size_t known_{}, closed_{};
  Sums sums_;
  std::int64_t last_{}, idle_since_{};
  unsigned activity_{};
};

}  // namespace maya::simulate
