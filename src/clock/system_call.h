// System calls without the C library: its functions may be wrapped by those that stand on this.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace maya::clock {

inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// Nanoseconds of the machine's own clocks.
inline std::int64_t real_ns(clockid_t id = CLOCK_MONOTONIC) {
  timespec t{};
  system_call(SYS_clock_gettime, id, reinterpret_cast<long>(&t));
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Sleeps while the word has this value, at most so long. Returns what the kernel says: 0 or -errno.
inline long futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                       std::int64_t ns) {
  timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  return system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT, value,
                     reinterpret_cast<long>(&t));
}

inline void futex_wake(const std::atomic<std::uint32_t>& word, int count = 1 << 30) {
  system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE, count);
}

inline void pause_ns(std::int64_t ns) {
  timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  system_call(SYS_nanosleep, reinterpret_cast<long>(&t));
}

}  // namespace maya::clock
