#include "session/timed_wait.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "clock/system_call.h"
#include "session/live_device.h"
#include "session/quiet_thread.h"
#include "session/timers.h"
#include "session/virtual_time.h"

namespace maya::session {

// Those of this process that wait. Held for moments only; never while anything else is.
struct Sleepers {
  std::atomic_flag held = ATOMIC_FLAG_INIT;
  TimedWait* first{};
  std::atomic<bool> helped{};  // there is a helper thread

  void lock() {
    while (held.test_and_set(std::memory_order_acquire)) clock::system_call(SYS_sched_yield);
  }
  void unlock() { held.clear(std::memory_order_release); }
  void add(TimedWait& wait) {
    lock();
    wait.next_ = first;
    if (first != nullptr) first->previous_ = &wait;
    first = &wait;
    unlock();
  }
  void remove(TimedWait& wait) {
    lock();
    if (wait.next_ != nullptr) wait.next_->previous_ = wait.previous_;
    (wait.previous_ != nullptr ? wait.previous_->next_ : first) = wait.next_;
    unlock();
  }
  // Wakes those whose time has come; whether there were any.
  bool wake() {
    bool any = false;
    lock();
    for (TimedWait* wait = first; wait != nullptr; wait = wait->next_) {
      if (!time_domain->ended(*wait->place_)) continue;
      any = true;
      switch (wait->on_) {
        case TimedWait::On::condition:
          pthread_cond_broadcast(static_cast<pthread_cond_t*>(wait->object_));
          break;
        case TimedWait::On::word:
        case TimedWait::On::shared_word:
          clock::system_call(
              SYS_futex, reinterpret_cast<long>(wait->object_),
              FUTEX_WAKE | (wait->on_ == TimedWait::On::word ? FUTEX_PRIVATE_FLAG : 0), 1 << 30);
          break;
        case TimedWait::On::descriptor: {
          const std::uint64_t one = 1;
          clock::system_call(SYS_write, wait->descriptor_, reinterpret_cast<long>(&one),
                             sizeof one);
          break;
        }
        case TimedWait::On::nothing:  // looks by itself
          break;
      }
    }
    unlock();
    return any;
  }
};

namespace {

constinit Sleepers sleepers;

// The arbiter is gone: time is the machine's from here on.
void follow_machine(std::int64_t until) {
  const std::int64_t now = time_domain->now();
  if (until > now) clock::pause_ns(std::min<std::int64_t>(until - now, 100'000'000));
  time_domain->reached(std::min(until, now + 100'000'000));
}

// It takes part, so that no time passes between its call and what it does: from when it is asked
// for. Its own calls are real.
std::atomic<clock::Place*> helpers_place{nullptr};

void* help(void*) {
  clock::Member& member = own_member();
  clock::Place& place = *helpers_place.load();
  place.thread = static_cast<std::int32_t>(clock::system_call(SYS_gettid));
  for (;;) {
    const std::uint32_t word = member.word.load();
    live_help_partners();
    fire_timers(time_domain->now());
    const std::int64_t timer = earliest_timer();
    // One that was on its way into the kernel has missed the call: again, soon.
    const std::int64_t rest = sleepers.wake() ? 500'000 : 1'000'000'000;
    if (timer == INT64_MAX) {
      clock::futex_wait(member.word, word, rest);
      continue;
    }
    time_domain->begin_wait(place, time_domain->now(), timer, clock::Waits::in_kernel);
    clock::futex_wait(member.word, word, rest);
    const bool alone = !time_domain->ended(place) && !time_domain->arbiter_lives();
    time_domain->end_wait(place);
    if (alone) follow_machine(timer);
  }
  return nullptr;
}

// One for each thread: it is asked for again and again. Kept out of the way of small numbers.
struct OwnDescriptor {
  int number{-1};
  std::int32_t process{};
  ~OwnDescriptor() {
    if (number >= 0 && process == getpid()) ::close(number);
  }
};
thread_local OwnDescriptor own_descriptor;

int wake_descriptor() {
  if (own_descriptor.number < 0 || own_descriptor.process != getpid()) {
    const int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int high = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, 512);
    if (high >= 0) ::close(made);
    own_descriptor.number = high >= 0 ? high : made;
    own_descriptor.process = getpid();
  }
  return own_descriptor.number;
}

}  // namespace

TimedWait::TimedWait(std::int64_t deadline, On on, void* object)
    : place_(own_place()), on_(on), object_(object) {
  if (on == On::descriptor) {
    descriptor_ = wake_descriptor();
    std::uint64_t count = 0;
    clock::system_call(SYS_read, descriptor_, reinterpret_cast<long>(&count), sizeof count);
  }
  const std::int64_t now = thread_now();
  time_domain->acted(now);
  time_domain->begin_wait(*place_, now, deadline,
                          on == On::condition ? clock::Waits::for_lock : clock::Waits::in_kernel);
  sleepers.add(*this);
  start_helper();
}

TimedWait::~TimedWait() {
  const bool by_time = time_domain->ended(*place_);
  sleepers.remove(*this);
  time_domain->end_wait(*place_);
  thread_woke(by_time);
}

bool TimedWait::over() {
  if (time_domain->ended(*place_)) return true;
  return looks_++ > 0 && !time_domain->arbiter_lives();
}

bool start_helper() {
  if (sleepers.helped.load(std::memory_order_relaxed)) return true;
  if (sleepers.helped.exchange(true)) return true;
  helpers_place = time_domain->join(getpid(), 0, time_domain->now());
  if (helpers_place.load() != nullptr && start_quiet_thread(help)) return true;
  if (clock::Place* place = helpers_place.exchange(nullptr)) time_domain->leave(*place);
  sleepers.helped = false;
  return false;
}

void call_helper() {
  clock::Member& member = own_member();
  member.word.fetch_add(1);
  clock::futex_wake(member.word);
}

clock::Member& own_member() {
  static std::atomic<clock::Member*> found{nullptr};
  const std::int32_t process = getpid();
  clock::Member* member = found.load(std::memory_order_relaxed);
  if (member == nullptr || member->process.load() != process)
    found = member = &time_domain->member_of_process(process);
  return *member;
}

void forget_sleepers() {
  sleepers.held.clear();
  sleepers.first = nullptr;
  sleepers.helped = false;
  forget_timers();
}

}  // namespace maya::session
