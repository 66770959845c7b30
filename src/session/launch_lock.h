// The lock under which a launch becomes an op. The tables of launches already seen are kept per
// function; one lock serves all of them.
//
// Decoding a launch may need values that another rank has promised. A thread that waits for a peer
// gives the lock up meanwhile (`released_while`): other threads go on launching, and two ranks can
// not wait for each other's locks. Whoever holds the lock must therefore look tables up again after
// anything that can wait.
#pragma once

#include <sched.h>

#include <atomic>

namespace maya::session {

class LaunchLock {
 public:
  class Hold {
   public:
    explicit Hold(LaunchLock& lock) : lock_(lock) { lock_.acquire(); }
    ~Hold() { lock_.release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    LaunchLock& lock_;
  };

  // Runs `wait` without the lock, if the calling thread holds it.
  template <class Wait>
  void released_while(Wait&& wait) {
    const bool held = owner_.load(std::memory_order_relaxed) == self();
    if (held) release();
    wait();
    if (held) acquire();
  }

 private:
  // An address no other living thread has.
  static const void* self() {
    thread_local char place;
    return &place;
  }
  void acquire() {
    const void* nobody = nullptr;
    for (int tries = 0; !owner_.compare_exchange_weak(nobody, self(), std::memory_order_acquire);
         ++tries, nobody = nullptr) {
      constexpr int spins = 200;  // a launch seen before takes some 50 ns
      if (tries < spins)
        __builtin_ia32_pause();
      else
        sched_yield();
    }
  }
  void release() { owner_.store(nullptr, std::memory_order_release); }

  std::atomic<const void*> owner_{nullptr};
};

LaunchLock& launch_lock();

}  // namespace maya::session
