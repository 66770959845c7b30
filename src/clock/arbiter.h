// Decides when virtual time moves on without anybody working: in one place, the launcher.
//
// The rule of conservative simulation: the wait with the earliest deadline ends when no thread of
// the job can act before it. A thread that runs can act at its own time; one that sleeps in the
// kernel can act only when another one has acted. Who sleeps, the kernel says (kernel_view.h), so
// locks, pipes, sockets and whatever else threads wait for need no wrapper, and a message under way
// is a thread that was woken and has not run yet.
//
// A thread that asks again and again sees something new only after another one has acted. Where the
// next one to act waits for a device, nobody has to ask before that: those who spin go on right
// after it. So a step of an engine whose processes spin on shared memory costs few rounds, and none
// of them notices the end of the step late. In the same way they ask right after a thread that
// worked has gone to wait: what they look for may be what it left behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "clock/domain.h"
#include "clock/kernel_view.h"

namespace maya::clock {

class Arbiter {
 public:
  explicit Arbiter(Domain& domain);

  // Until `stop`: looks, ends waits, sleeps while nobody waits.
  void run(const std::atomic<bool>& stop);
  // Looks once; whether a wait was ended.
  bool step();

  // Real seconds without progress after which the earliest wait is ended all the same.
  void set_patience(double seconds) { patience_ns_ = static_cast<std::int64_t>(seconds * 1e9); }

 private:
  struct Known {                   // of a place
    std::int64_t time{-1};         // as published when …
    std::int64_t cpu_ns{};         // … it had used so much
    std::uint64_t turns{};         // at the last look
    std::uint64_t called_turns{};  // when its wait was ended
    bool looked{};
  };
  enum class Finding : std::uint8_t { later, asleep, earlier, gone, stopped };

  Finding examine(std::uint32_t index, std::int64_t deadline);
  void end_wait(std::uint32_t index, bool forced);
  // Those who spin ask again right after this time.
  void hurry_spinners(std::int64_t time);
  bool unchanged();

  Domain& domain_;
  KernelView kernel_;
  std::vector<Known> known_;
  std::uint32_t hindrance_{0xffffffff};  // the place that held time back last: looked at first
  std::int64_t patience_ns_{10'000'000'000}, last_progress_{};
  std::int64_t seen_cpu_{};
};

}  // namespace maya::clock
