// Locks, joins, signals and messages that are waited for with a timeout, in virtual time.
//
// These waits cannot be ended from outside: the C library or the kernel goes on waiting when it is
// woken before its time. They are made in short slices instead, and after each it is asked whether
// the job's time has come to the deadline. Real time passes, virtual time does not.
#include <errno.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <sys/sem.h>
#include <threads.h>
#include <time.h>

#include <algorithm>

#include "clock/system_call.h"
#include "session/next.h"
#include "session/timed_wait.h"
#include "session/timespans.h"
#include "session/virtual_time.h"

namespace {

using namespace maya::session;

bool is_virtual(clockid_t id, const timespec* t) {
  return in_virtual_time() && t != nullptr && valid_timespec(*t) && is_wall_clock(id);
}

// `wait(slice)` waits so long at most and says whether what was waited for came (or failed). False:
// the deadline came first.
template <class Wait>
bool wait_in_slices(std::int64_t deadline, Wait&& wait) {
  if (deadline <= thread_now()) return wait(std::int64_t{0});
  constexpr std::int64_t longest = 5'000'000;
  std::int64_t slice = 100'000;
  TimedWait place(deadline, TimedWait::On::nothing, nullptr);
  while (!place.over()) {
    if (wait(slice)) return true;
    slice = std::min(slice * 2, longest);
  }
  return wait(std::int64_t{0});
}

timespec real_end(std::int64_t ns, clockid_t id = CLOCK_MONOTONIC) {
  return to_timespec(maya::clock::real_ns(id) + ns);
}

// For functions that return their error and take the clock and the time of the end.
template <class Function>
int locked_until(std::int64_t deadline, Function&& function) {
  int result = ETIMEDOUT;
  wait_in_slices(deadline, [&](std::int64_t slice) {
    const timespec end = real_end(slice);
    result = function(&end);
    return result != ETIMEDOUT;
  });
  return result;
}

using Mutex = int(pthread_mutex_t*, clockid_t, const timespec*);
using Lock = int(pthread_rwlock_t*, clockid_t, const timespec*);
using Join = int(pthread_t, void**, clockid_t, const timespec*);
constinit const Next<Mutex> real_mutex("pthread_mutex_clocklock");
constinit const Next<Lock> real_read("pthread_rwlock_clockrdlock");
constinit const Next<Lock> real_write("pthread_rwlock_clockwrlock");
constinit const Next<Join> real_join("pthread_clockjoin_np");
constinit const Next<int(pthread_mutex_t*, const timespec*)> real_timed_mutex(
    "pthread_mutex_timedlock");
constinit const Next<int(pthread_rwlock_t*, const timespec*)> real_timed_read(
    "pthread_rwlock_timedrdlock");
constinit const Next<int(pthread_rwlock_t*, const timespec*)> real_timed_write(
    "pthread_rwlock_timedwrlock");
constinit const Next<int(pthread_t, void**, const timespec*)> real_timed_join(
    "pthread_timedjoin_np");
constinit const Next<int(const sigset_t*, siginfo_t*, const timespec*)> real_sigtimedwait(
    "sigtimedwait");
constinit const Next<int(mqd_t, const char*, size_t, unsigned, const timespec*)> real_mq_send(
    "mq_timedsend");
constinit const Next<ssize_t(mqd_t, char*, size_t, unsigned*, const timespec*)> real_mq_receive(
    "mq_timedreceive");
constinit const Next<int(int, sembuf*, size_t, const timespec*)> real_semtimedop("semtimedop");

}  // namespace

// Mutexes and read-write locks -----------------------------------------------------------------

MAYA_WRAPPER int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t id,
                                         const timespec* t) noexcept {
  if (!is_virtual(id, t)) return real_mutex.get()(mutex, id, t);
  if (const int result = pthread_mutex_trylock(mutex); result != EBUSY) return result;
  return locked_until(time_at(id, *t), [=](const timespec* end) {
    return real_mutex.get()(mutex, CLOCK_MONOTONIC, end);
  });
}

MAYA_WRAPPER int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* t) noexcept {
  if (!is_virtual(CLOCK_REALTIME, t)) return real_timed_mutex.get()(mutex, t);
  return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, t);
}

MAYA_WRAPPER int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t id,
                                            const timespec* t) noexcept {
  if (!is_virtual(id, t)) return real_read.get()(lock, id, t);
  if (const int result = pthread_rwlock_tryrdlock(lock); result != EBUSY) return result;
  return locked_until(time_at(id, *t), [=](const timespec* end) {
    return real_read.get()(lock, CLOCK_MONOTONIC, end);
  });
}

MAYA_WRAPPER int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* t) noexcept {
  if (!is_virtual(CLOCK_REALTIME, t)) return real_timed_read.get()(lock, t);
  return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, t);
}

MAYA_WRAPPER int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t id,
                                            const timespec* t) noexcept {
  if (!is_virtual(id, t)) return real_write.get()(lock, id, t);
  if (const int result = pthread_rwlock_trywrlock(lock); result != EBUSY) return result;
  return locked_until(time_at(id, *t), [=](const timespec* end) {
    return real_write.get()(lock, CLOCK_MONOTONIC, end);
  });
}

MAYA_WRAPPER int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* t) noexcept {
  if (!is_virtual(CLOCK_REALTIME, t)) return real_timed_write.get()(lock, t);
  return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, t);
}

// Threads --------------------------------------------------------------------------------------

MAYA_WRAPPER int pthread_clockjoin_np(pthread_t thread, void** value, clockid_t id,
                                      const timespec* t) {
  if (!is_virtual(id, t)) return real_join.get()(thread, value, id, t);
  return locked_until(time_at(id, *t), [=](const timespec* end) {
    return real_join.get()(thread, value, CLOCK_MONOTONIC, end);
  });
}

MAYA_WRAPPER int pthread_timedjoin_np(pthread_t thread, void** value, const timespec* t) {
  if (!is_virtual(CLOCK_REALTIME, t)) return real_timed_join.get()(thread, value, t);
  return pthread_clockjoin_np(thread, value, CLOCK_REALTIME, t);
}

MAYA_WRAPPER int thrd_sleep(const timespec* t, timespec* left) {
  const int result = clock_nanosleep(CLOCK_REALTIME, 0, t, left);
  return result == 0 ? 0 : result == EINTR ? -1 : -2;
}

MAYA_WRAPPER int mtx_timedlock(mtx_t* mutex, const timespec* t) {
  const int result = pthread_mutex_timedlock(reinterpret_cast<pthread_mutex_t*>(mutex), t);
  return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}

MAYA_WRAPPER int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* t) {
  const int result = pthread_cond_timedwait(reinterpret_cast<pthread_cond_t*>(condition),
                                            reinterpret_cast<pthread_mutex_t*>(mutex), t);
  return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}

// Signals, messages, semaphores of System V ----------------------------------------------------

MAYA_WRAPPER int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* t) {
  if (!is_virtual(CLOCK_MONOTONIC, t) || t->tv_sec < 0)
    return real_sigtimedwait.get()(set, info, t);
  int result = -1;
  wait_in_slices(time_after(to_ns(*t)), [&](std::int64_t slice) {
    const timespec span = to_timespec(slice);
    result = real_sigtimedwait.get()(set, info, &span);
    return result >= 0 || errno != EAGAIN;
  });
  return result;
}

MAYA_WRAPPER int mq_timedsend(mqd_t queue, const char* text, size_t bytes, unsigned priority,
                              const timespec* t) {
  if (!is_virtual(CLOCK_REALTIME, t)) return real_mq_send.get()(queue, text, bytes, priority, t);
  int result = -1;
  wait_in_slices(time_at(CLOCK_REALTIME, *t), [&](std::int64_t slice) {
    const timespec end = real_end(slice, CLOCK_REALTIME);
    result = real_mq_send.get()(queue, text, bytes, priority, &end);
    return result >= 0 || errno != ETIMEDOUT;
  });
  return result;
}

MAYA_WRAPPER ssize_t mq_timedreceive(mqd_t queue, char* text, size_t bytes, unsigned* priority,
                                     const timespec* t) {
  if (!is_virtual(CLOCK_REALTIME, t)) return real_mq_receive.get()(queue, text, bytes, priority, t);
  ssize_t result = -1;
  wait_in_slices(time_at(CLOCK_REALTIME, *t), [&](std::int64_t slice) {
    const timespec end = real_end(slice, CLOCK_REALTIME);
    result = real_mq_receive.get()(queue, text, bytes, priority, &end);
    return result >= 0 || errno != ETIMEDOUT;
  });
  return result;
}

MAYA_WRAPPER int semtimedop(int set, sembuf* operations, size_t count, const timespec* t) noexcept {
  if (!is_virtual(CLOCK_MONOTONIC, t) || t->tv_sec < 0)
    return real_semtimedop.get()(set, operations, count, t);
  int result = -1;
  wait_in_slices(time_after(to_ns(*t)), [&](std::int64_t slice) {
    const timespec span = to_timespec(slice);
    result = real_semtimedop.get()(set, operations, count, &span);
    return result >= 0 || errno != EAGAIN;
  });
  return result;
}
