// Host time: the CPU time a thread spends between intercepted calls.
//
// Asking the kernel for a thread's CPU time on every call would cost more than the calls. Instead
// the time-stamp counter is read at entry and exit; a short gap between two calls cannot contain a
// preemption worth speaking of and counts as it is. For a long gap the CPU clock is asked, once,
// and the difference to the last time it was asked, less the short gaps and our own time since, is
// what the thread really worked. When a long gap was mostly waiting, and the thread gave up the
// processor by itself, it had been asleep: the next record is marked as resumed.
#pragma once

#include <cstdint>

namespace maya::session {

class HostClock {
 public:
  void enter() {
    if (depth_++ == 0) {
      std::uint64_t now = entered_ = ticks();
      count(now);
    }
  }
  // As entering and leaving at once, for calls that only ask for the time.
  void pass() {
    if (depth_ != 0) return;
    const std::uint64_t now = ticks();
    count(now);
    last_exit_ = now;
  }
  void leave() {
    if (--depth_ != 0) return;
    last_exit_ = ticks();
    if (measuring_) [[unlikely]]
      count_inside();
  }
  // Host time since the last record, in nanoseconds, whether the thread had been asleep, and for
  // how much of the time other threads worked with it (session/parallel_work.h).
  std::uint64_t take(bool& resumed, std::uint64_t& parallel_ns) {
    resumed = resumed_;
    resumed_ = false;
    parallel_ns = parallel_ns_;
    parallel_ns_ = 0;
    std::uint64_t ticks = pending_;
    pending_ = 0;
    records_ = true;
    return to_ns(ticks);
  }
  bool inside() const { return depth_ != 0; }
  // What passed since the last call was a wait, and is nobody's host time.
  void pass_over() { last_exit_ = ticks(); }
  // All host time of the thread so far, in ticks; whether it has slept since this was last asked.
  std::uint64_t worked() const { return worked_; }
  bool slept() {
    const bool slept = slept_;
    slept_ = false;
    return slept;
  }
  // After a call that blocked on something outside the program's own work.
  void reanchor();
  // Another thread has ended a wait of this one.
  void woken() {
    reanchor();
    pass_over();
    resumed_ = true;
    slept_ = false;
  }
  bool records() const { return records_; }  // host time of this thread has been recorded
  // Host time that will be part of the next record.
  std::uint64_t pending_ns() const { return to_ns(pending_); }

  static std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }
  static std::uint64_t to_ns(std::uint64_t ticks) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(ticks) * ns_per_tick_q32_) >>
                                      32);
  }
  static void calibrate();
  static void calibrate(double ns_per_tick);

 private:
  void count(std::uint64_t now) {
    std::uint64_t gap = now - last_exit_;
    if (gap < long_gap) [[likely]]
      pending_ += gap, worked_ += gap;
    else
      long_enter(now);
  }
  void long_enter(std::uint64_t now);
  void anchor(std::uint64_t cpu_ns, std::uint64_t now);
  void count_inside() const;
  // Ticks, some 80 µs: less than a time slice, so whoever was preempted in a gap was away for
  // longer.
  static constexpr std::uint64_t long_gap = 200000;

  static std::uint64_t ns_per_tick_q32_;
  static bool measuring_;  // MAYA_MEASURE: how long are we ourselves at work?
  int depth_ = 0;
  bool resumed_ = false, slept_ = false, records_ = false;
  std::uint64_t entered_ = 0, last_exit_ = 0, pending_ = 0, worked_ = 0;
  std::uint64_t anchor_ticks_ = 0, anchor_cpu_ns_ = 0, parallel_ns_ = 0;
  long anchor_switches_ = 0;
  bool anchored_ = false;
};

HostClock& host_clock();        // of the calling thread
std::uint16_t thread_number();  // small, of the calling thread

}  // namespace maya::session
