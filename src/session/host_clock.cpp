#include "session/host_clock.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>

#include "clock/system_call.h"
#include "session/parallel_work.h"
#include "session/session.h"

namespace maya::session {
namespace {

std::uint64_t clock_ns(clockid_t clock) {
  return static_cast<std::uint64_t>(clock::real_ns(clock));
}

long voluntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

const std::uint64_t start_ticks = HostClock::ticks();
const std::uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
std::atomic<std::uint16_t> next_thread{0};
constexpr std::uint64_t divided_work = 500'000;  // ns; dividing less is not worth a thread's while
std::atomic<std::uint64_t> inside_ticks{0};      // of all threads, while measuring

}  // namespace

// Until calibrated: 2.5 GHz.
std::uint64_t HostClock::ns_per_tick_q32_ = static_cast<std::uint64_t>(0.4 * 4294967296.0);

bool HostClock::measuring_ = std::getenv("MAYA_MEASURE") != nullptr;

void HostClock::count_inside() const {
  inside_ticks.fetch_add(last_exit_ - entered_, std::memory_order_relaxed);
}

// For bench/host_time.py, which asks before and after a step.
extern "C" __attribute__((visibility("default"))) std::uint64_t maya_inside_ns() {
  return HostClock::to_ns(inside_ticks.load(std::memory_order_relaxed));
}

void HostClock::calibrate() {
  std::uint64_t ns = clock_ns(CLOCK_MONOTONIC) - start_ns, passed = ticks() - start_ticks;
  while (ns < 2000000) {  // at load time nothing has passed yet: two milliseconds give 0.1 %
    ns = clock_ns(CLOCK_MONOTONIC) - start_ns, passed = ticks() - start_ticks;
  }
  if (passed > 0)
    ns_per_tick_q32_ = static_cast<std::uint64_t>(static_cast<double>(ns) /
                                                  static_cast<double>(passed) * 4294967296.0);
}

void HostClock::calibrate(double ns_per_tick) {
  ns_per_tick_q32_ = static_cast<std::uint64_t>(ns_per_tick * 4294967296.0);
}

void HostClock::anchor(std::uint64_t cpu_ns, std::uint64_t now) {
  add_caller_time(cpu_ns - std::min(cpu_ns, anchor_cpu_ns_));
  anchor_cpu_ns_ = cpu_ns;
  anchor_ticks_ = now;
}

void HostClock::reanchor() {
  anchor(clock_ns(CLOCK_THREAD_CPUTIME_ID), ticks());
  anchor_switches_ = voluntary_switches();
  anchored_ = true;
}

void HostClock::long_enter(std::uint64_t now) {
  auto add = [this](std::uint64_t ns) {
    const auto ticks = static_cast<std::uint64_t>(static_cast<double>(ns) * 4294967296.0 /
                                                  static_cast<double>(ns_per_tick_q32_));
    pending_ += ticks, worked_ += ticks;
  };
  std::uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (!anchored_) {  // the thread's first call: all it has used so far
    add(cpu);
    resumed_ = slept_ = true;
    reanchor();
    return;
  }
  std::uint64_t used = cpu - anchor_cpu_ns_;
  std::uint64_t before = last_exit_ > anchor_ticks_ ? to_ns(last_exit_ - anchor_ticks_) : 0;
  std::uint64_t wall = to_ns(now - last_exit_);
  std::uint64_t worked = used > before ? used - before : 0;
  if (worked > wall) worked = wall;
  add(worked);
  if (wall - worked >
      20000) {  // asleep, or preempted: only then is the second question worth its call
    long switches = voluntary_switches();
    if (switches != anchor_switches_) resumed_ = slept_ = true;
    anchor_switches_ = switches;
  }
  anchor(cpu, now);
  if (worked > divided_work) parallel_ns_ += claim_parallel_work(worked);
}

HostClock& host_clock() {
  static thread_local HostClock clock;
  return clock;
}

std::uint16_t thread_number() {
  static thread_local std::uint16_t number = next_thread.fetch_add(1, std::memory_order_relaxed);
  return number;
}

Call::Call() { host_clock().enter(); }
Call::~Call() { host_clock().leave(); }

}  // namespace maya::session
