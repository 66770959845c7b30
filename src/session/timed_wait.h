// A wait with a deadline that something else may end too: a signal of a condition variable, a byte
// in a pipe. The thread waits for that in the kernel, as it would without us, and a helper thread
// of the process wakes it when the arbiter has ended its wait.
#pragma once

#include <cstdint>

#include "clock/domain.h"

namespace maya::session {

class TimedWait {
 public:
  enum class On : std::uint8_t { condition, word, shared_word, descriptor, nothing };
  // `object`: the condition variable or the futex word. In virtual time only.
  TimedWait(std::int64_t deadline, On on, void* object);
  ~TimedWait();
  TimedWait(const TimedWait&) = delete;
  TimedWait& operator=(const TimedWait&) = delete;

  bool over();  // the deadline has come
  int descriptor() const {
    return descriptor_;
  }  // becomes readable when it has, for On::descriptor
  // How long to wait in the kernel before looking again whether it is over.
  static constexpr std::int64_t slice_ns = 2'000'000'000;

 private:
  friend struct Sleepers;
  TimedWait *next_{}, *previous_{};
  clock::Place* place_;
  On on_;
  void* object_;
  int descriptor_{-1};
  int looks_{};
};

// The helper thread, unless there is one; whether there is. It ends waits inside the kernel and
// does what timers are for (timers.h).
bool start_helper();
void call_helper();           // it has something to look at
clock::Member& own_member();  // of this process
void forget_sleepers();       // in a forked child
clock::Place* own_place();    // of the calling thread
void enter_virtual_time();    // when the process starts

}  // namespace maya::session
