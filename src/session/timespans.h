// Spans and times as the C library has them, and as the job's time has them.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "session/virtual_time.h"

namespace maya::session {

constexpr std::int64_t ns_per_second = 1'000'000'000;
constexpr std::int64_t for_ever = INT64_MAX / 4;

inline bool is_wall_clock(clockid_t id) {
  return (id >= CLOCK_REALTIME && id <= CLOCK_MONOTONIC) ||
         (id >= CLOCK_MONOTONIC_RAW && id <= CLOCK_TAI);
}
inline bool valid_timespec(const timespec& t) {
  return t.tv_nsec >= 0 && t.tv_nsec < ns_per_second;
}
inline std::int64_t to_ns(const timespec& t) {
  if (t.tv_sec > for_ever / ns_per_second) return for_ever;
  if (t.tv_sec < -for_ever / ns_per_second) return -for_ever;
  return std::int64_t{t.tv_sec} * ns_per_second + t.tv_nsec;
}
inline timespec to_timespec(std::int64_t ns) {
  ns = std::max<std::int64_t>(ns, 0);
  return {ns / ns_per_second, ns % ns_per_second};
}

// Deadlines in the job's time: so long from the calling thread's time, or at a clock's reading.
inline std::int64_t time_after(std::int64_t ns) {
  return std::min(thread_now() + std::clamp<std::int64_t>(ns, 0, for_ever), for_ever);
}
inline std::int64_t time_at(clockid_t id, const timespec& t) {
  return std::min(to_ns(t) - time_domain->real_start(id), for_ever);
}

}  // namespace maya::session
