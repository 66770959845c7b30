// Functions of the C library that read clocks or wait with a timeout, in virtual time. In real time
// each is the C library's own. Timers are in timer_calls.cpp, locks in timed_locks.cpp.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "clock/system_call.h"
#include "session/next.h"
#include "session/timed_wait.h"
#include "session/timespans.h"
#include "session/virtual_time.h"

namespace {

using namespace maya::session;
using maya::clock::real_ns;
using maya::clock::system_call;

constexpr std::int64_t second = ns_per_second;

std::int64_t reading(clockid_t id) { return time_domain->real_start(id) + thread_reads(); }

timespec slice_end() { return to_timespec(real_ns() + TimedWait::slice_ns); }

// Waits for the deadline alone. What is left of it when a signal came first.
bool sleep_to(std::int64_t deadline, std::int64_t& left) {
  const bool came = thread_sleeps_until(deadline);
  left = came ? 0 : std::max<std::int64_t>(deadline - thread_now(), 0);
  return came;
}

constinit const Next<int(clockid_t, timespec*)> real_gettime("clock_gettime");
constinit const Next<int(timeval*, void*)> real_gettimeofday("gettimeofday");
constinit const Next<time_t(time_t*)> real_time("time");
constinit const Next<int(timespec*, int)> real_timespec_get("timespec_get");
constinit const Next<int(clockid_t, int, const timespec*, timespec*)> real_clock_nanosleep(
    "clock_nanosleep");
constinit const Next<int(const timespec*, timespec*)> real_nanosleep("nanosleep");
constinit const Next<int(useconds_t)> real_usleep("usleep");
constinit const Next<unsigned(unsigned)> real_sleep("sleep");
constinit const Next<int()> real_yield("sched_yield");
constinit const Next<int(int, rusage*)> real_getrusage("getrusage");
constinit const Next<clock_t(tms*)> real_times("times");

// Processor time as the target host would need it.
std::int64_t scaled(std::int64_t ns) {
  return static_cast<std::int64_t>(static_cast<double>(ns) * time_domain->scale());
}
// Of this process and thread, and of those that pthread_getcpuclockid and clock_getcpuclockid name.
bool is_cpu_clock(clockid_t id) {
  return id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID || id < 0;
}

}  // namespace

// Clocks ---------------------------------------------------------------------------------------

MAYA_WRAPPER int clock_gettime(clockid_t id, timespec* t) noexcept {
  if (!in_virtual_time()) return real_gettime.get()(id, t);
  if (!is_wall_clock(id)) {
    const int result = real_gettime.get()(id, t);
    if (result == 0 && is_cpu_clock(id)) *t = to_timespec(scaled(to_ns(*t)));
    return result;
  }
  const std::int64_t now = reading(id);
  *t = to_timespec(now);
  if (id == CLOCK_REALTIME) notice_calibration(now - time_domain->real_start(id));
  return 0;
}

MAYA_WRAPPER int gettimeofday(timeval* t, void* zone) noexcept {
  if (!in_virtual_time()) return real_gettimeofday.get()(t, zone);
  const std::int64_t now = reading(CLOCK_REALTIME);
  *t = {now / second, now % second / 1000};
  return 0;
}

MAYA_WRAPPER time_t time(time_t* t) noexcept {
  if (!in_virtual_time()) return real_time.get()(t);
  const time_t now = reading(CLOCK_REALTIME) / second;
  if (t != nullptr) *t = now;
  return now;
}

MAYA_WRAPPER int timespec_get(timespec* t, int base) noexcept {
  if (!in_virtual_time() || base != TIME_UTC) return real_timespec_get.get()(t, base);
  *t = to_timespec(reading(CLOCK_REALTIME));
  return base;
}

MAYA_WRAPPER clock_t clock() noexcept {
  timespec t{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return -1;
  return to_ns(t) / (second / CLOCKS_PER_SEC);
}

MAYA_WRAPPER int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  const int result = real_getrusage.get()(who, usage);
  if (result != 0 || !in_virtual_time()) return result;
  for (timeval* t : {&usage->ru_utime, &usage->ru_stime}) {
    const std::int64_t ns = scaled(to_ns({t->tv_sec, t->tv_usec * 1000}));
    *t = {ns / second, ns % second / 1000};
  }
  return 0;
}

MAYA_WRAPPER clock_t times(tms* t) noexcept {
  const clock_t real = real_times.get()(t);
  if (real == -1 || !in_virtual_time()) return real;
  if (t != nullptr)
    for (clock_t* part : {&t->tms_utime, &t->tms_stime, &t->tms_cutime, &t->tms_cstime})
      *part = scaled(*part);
  return reading(CLOCK_MONOTONIC) / (second / sysconf(_SC_CLK_TCK));
}

// Nobody may set the machine's clock, whoever runs the command: it would be the real one.
namespace {

constinit const Next<int(clockid_t, const timespec*)> real_settime("clock_settime");
constinit const Next<int(const timeval*, const struct timezone*)> real_settimeofday("settimeofday");

}  // namespace

MAYA_WRAPPER int clock_settime(clockid_t id, const timespec* t) noexcept {
  if (!in_virtual_time()) return real_settime.get()(id, t);
  errno = !valid_timespec(*t) || id != CLOCK_REALTIME ? EINVAL : EPERM;
  return -1;
}

MAYA_WRAPPER int settimeofday(const timeval* t, const struct timezone* zone) noexcept {
  if (!in_virtual_time()) return real_settimeofday.get()(t, zone);
  errno = EPERM;
  return -1;
}

// Sleeps ---------------------------------------------------------------------------------------

MAYA_WRAPPER int clock_nanosleep(clockid_t id, int flags, const timespec* t, timespec* left) {
  if (!in_virtual_time() || !is_wall_clock(id) || t == nullptr || !valid_timespec(*t) ||
      t->tv_sec < 0)
    return real_clock_nanosleep.get()(id, flags, t, left);
  const bool absolute = (flags & TIMER_ABSTIME) != 0;
  const std::int64_t deadline = absolute ? time_at(id, *t) : time_after(to_ns(*t));
  if (deadline <= thread_now()) {
    thread_spins();
    return 0;
  }
  std::int64_t rest = 0;
  if (sleep_to(deadline, rest)) return 0;
  if (!absolute && left != nullptr) *left = to_timespec(rest);
  return EINTR;
}

MAYA_WRAPPER int nanosleep(const timespec* t, timespec* left) {
  if (!in_virtual_time()) return real_nanosleep.get()(t, left);
  if (t == nullptr || !valid_timespec(*t) || t->tv_sec < 0) return errno = EINVAL, -1;
  const int result = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
  if (result != 0) errno = result;
  return result == 0 ? 0 : -1;
}

MAYA_WRAPPER int usleep(useconds_t us) {
  if (!in_virtual_time()) return real_usleep.get()(us);
  const timespec t = to_timespec(std::int64_t{us} * 1000);
  return nanosleep(&t, nullptr);
}

MAYA_WRAPPER unsigned sleep(unsigned seconds) {
  if (!in_virtual_time()) return real_sleep.get()(seconds);
  const timespec t{static_cast<time_t>(seconds), 0};
  timespec left{};
  if (nanosleep(&t, &left) == 0) return 0;
  return static_cast<unsigned>(left.tv_sec + (left.tv_nsec > 0 ? 1 : 0));
}

MAYA_WRAPPER int sched_yield() noexcept {
  if (in_virtual_time()) thread_spins();
  return real_yield.get()();
}

// Condition variables --------------------------------------------------------------------------

namespace {

using ClockWait = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
constinit const Next<ClockWait> real_clockwait("pthread_cond_clockwait");
constinit const Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> real_timedwait(
    "pthread_cond_timedwait");

int wait_on_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, std::int64_t deadline) {
  if (deadline <= thread_now()) {
    // Whoever signals needs the mutex: it has to be free for a moment.
    const timespec past{};
    return real_clockwait.get()(condition, mutex, CLOCK_MONOTONIC, &past);
  }
  TimedWait wait(deadline, TimedWait::On::condition, condition);
  while (!wait.over()) {
    const timespec end = slice_end();
    const int result = real_clockwait.get()(condition, mutex, CLOCK_MONOTONIC, &end);
    if (wait.over()) {
      // It may have been a signal that we took for the call of our helper: it is handed on.
      if (result == 0) pthread_cond_signal(condition);
      break;
    }
    if (result != ETIMEDOUT) return result;
  }
  return ETIMEDOUT;
}

}  // namespace

MAYA_WRAPPER int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                        clockid_t id, const timespec* t) {
  if (!in_virtual_time() || !valid_timespec(*t) || !is_wall_clock(id))
    return real_clockwait.get()(condition, mutex, id, t);
  return wait_on_condition(condition, mutex, time_at(id, *t));
}

MAYA_WRAPPER int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                        const timespec* t) {
  if (!in_virtual_time() || !valid_timespec(*t)) return real_timedwait.get()(condition, mutex, t);
  constexpr unsigned monotonic = 2;  // as the C library marks it, since 2.25
  const clockid_t id = condition->__data.__wrefs & monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME;
  return wait_on_condition(condition, mutex, time_at(id, *t));
}

// Semaphores and futexes -----------------------------------------------------------------------

namespace {

// A semaphore as the C library has it on 64-bit machines since 2.21.
struct Semaphore {
  std::atomic<std::uint64_t> data;  // value, and above it the number of those that wait
  int shared;                       // 0: of one process
};
constexpr std::uint64_t one_waits = std::uint64_t{1} << 32;

constinit const Next<int(sem_t*, const timespec*)> real_sem_timedwait("sem_timedwait");
constinit const Next<int(sem_t*, clockid_t, const timespec*)> real_sem_clockwait("sem_clockwait");

int wait_on_semaphore(sem_t* semaphore, std::int64_t deadline) {
  if (sem_trywait(semaphore) == 0) return 0;
  if (deadline <= thread_now()) return errno = ETIMEDOUT, -1;
  auto& own = *reinterpret_cast<Semaphore*>(semaphore);
  const int private_flag = own.shared == 0 ? FUTEX_PRIVATE_FLAG : 0;
  TimedWait wait(deadline, private_flag != 0 ? TimedWait::On::word : TimedWait::On::shared_word,
                 semaphore);
  own.data.fetch_add(one_waits);
  int failed = 0;
  while (sem_trywait(semaphore) != 0) {
    if (wait.over()) {
      failed = ETIMEDOUT;
      break;
    }
    const timespec slice = to_timespec(TimedWait::slice_ns);
    const long answer = system_call(SYS_futex, reinterpret_cast<long>(semaphore),
                                    FUTEX_WAIT | private_flag, 0, reinterpret_cast<long>(&slice));
    if (answer == -EINTR) {
      failed = EINTR;
      break;
    }
  }
  own.data.fetch_sub(one_waits);
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

}  // namespace

MAYA_WRAPPER int sem_timedwait(sem_t* semaphore, const timespec* t) {
  if (!in_virtual_time() || !valid_timespec(*t)) return real_sem_timedwait.get()(semaphore, t);
  return wait_on_semaphore(semaphore, time_at(CLOCK_REALTIME, *t));
}

MAYA_WRAPPER int sem_clockwait(sem_t* semaphore, clockid_t id, const timespec* t) {
  if (!in_virtual_time() || !valid_timespec(*t) || !is_wall_clock(id))
    return real_sem_clockwait.get()(semaphore, id, t);
  return wait_on_semaphore(semaphore, time_at(id, *t));
}

namespace {

long wait_on_word(long word, long operation, long value, const timespec& t, long mask) {
  const long command = operation & FUTEX_CMD_MASK;
  const clockid_t id = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const std::int64_t deadline = command == FUTEX_WAIT ? time_after(to_ns(t)) : time_at(id, t);
  const bool own = (operation & FUTEX_PRIVATE_FLAG) != 0;
  TimedWait wait(deadline, own ? TimedWait::On::word : TimedWait::On::shared_word,
                 reinterpret_cast<void*>(word));
  while (!wait.over()) {
    const timespec slice = command == FUTEX_WAIT ? to_timespec(TimedWait::slice_ns) : slice_end();
    const long answer = system_call(SYS_futex, word, operation & ~long{FUTEX_CLOCK_REALTIME}, value,
                                    reinterpret_cast<long>(&slice), 0, mask);
    if (wait.over()) break;
    if (answer != -ETIMEDOUT) return answer;
  }
  return -ETIMEDOUT;
}

}  // namespace

MAYA_WRAPPER long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& value : a) value = va_arg(list, long);
  va_end(list);
  long answer;
  const long command = a[1] & FUTEX_CMD_MASK;
  const auto* timeout = reinterpret_cast<const timespec*>(a[3]);
  if (number == SYS_futex && timeout != nullptr &&
      (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && valid_timespec(*timeout) &&
      in_virtual_time())
    answer = wait_on_word(a[0], a[1], a[2], *timeout, a[5]);
  else if (number == SYS_clock_gettime && is_wall_clock(static_cast<clockid_t>(a[0])) &&
           in_virtual_time())
    return clock_gettime(static_cast<clockid_t>(a[0]), reinterpret_cast<timespec*>(a[1]));
  else if (number == SYS_clock_settime && in_virtual_time())
    return clock_settime(static_cast<clockid_t>(a[0]), reinterpret_cast<const timespec*>(a[1]));
  else
    answer = system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (answer < 0 && answer > -4096) {
    errno = static_cast<int>(-answer);
    return -1;
  }
  return answer;
}

// Descriptors ----------------------------------------------------------------------------------

namespace {

constinit const Next<int(pollfd*, nfds_t, int)> real_poll("poll");
constinit const Next<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> real_ppoll("ppoll");
constinit const Next<int(int, epoll_event*, int, int)> real_epoll_wait("epoll_wait");
constinit const Next<int(int, epoll_event*, int, int, const sigset_t*)> real_epoll_pwait(
    "epoll_pwait");
constinit const Next<int(int, epoll_event*, int, const timespec*, const sigset_t*)>
    real_epoll_pwait2("epoll_pwait2");
constinit const Next<int(int, fd_set*, fd_set*, fd_set*, timeval*)> real_select("select");
constinit const Next<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>
    real_pselect("pselect");

// An answer that came at once: asked again and again, it is a way of waiting.
int at_once(int answer) {
  if (answer == 0)
    thread_spins();
  else
    thread_did_work();
  return answer;
}

int poll_until(pollfd* descriptors, nfds_t count, std::int64_t deadline, const sigset_t* mask) {
  const timespec none{};
  if (const int ready = real_ppoll.get()(descriptors, count, &none, mask); ready != 0) return ready;
  TimedWait wait(deadline, TimedWait::On::descriptor, nullptr);
  std::vector<pollfd> all(descriptors, descriptors + count);
  all.push_back({wait.descriptor(), POLLIN, 0});
  for (;;) {
    const timespec slice = to_timespec(TimedWait::slice_ns);
    const int ready = real_ppoll.get()(all.data(), count + 1, &slice, mask);
    if (ready < 0) return ready;
    const int theirs = ready - (all[count].revents != 0 ? 1 : 0);
    for (nfds_t i = 0; i < count; ++i) descriptors[i].revents = all[i].revents;
    if (theirs > 0) return theirs;
    if (wait.over()) return 0;
  }
}

int epoll_until(int epoll, epoll_event* events, int most, std::int64_t deadline,
                const sigset_t* mask) {
  if (const int ready = real_epoll_pwait.get()(epoll, events, most, 0, mask); ready != 0)
    return ready;
  TimedWait wait(deadline, TimedWait::On::descriptor, nullptr);
  for (;;) {
    pollfd both[] = {{epoll, POLLIN, 0}, {wait.descriptor(), POLLIN, 0}};
    const timespec slice = to_timespec(TimedWait::slice_ns);
    if (const int ready = real_ppoll.get()(both, 2, &slice, mask); ready < 0) return ready;
    if (both[0].revents != 0)
      if (const int ready = real_epoll_pwait.get()(epoll, events, most, 0, mask); ready != 0)
        return ready;
    if (wait.over()) return 0;
  }
}

int select_until(int count, fd_set* in, fd_set* out, fd_set* bad, std::int64_t deadline,
                 const sigset_t* mask) {
  std::vector<pollfd> all;
  count = std::clamp(count, 0, static_cast<int>(FD_SETSIZE));
  for (int i = 0; i < count; ++i) {
    short wanted = 0;
    if (in != nullptr && FD_ISSET(i, in)) wanted |= POLLIN;
    if (out != nullptr && FD_ISSET(i, out)) wanted |= POLLOUT;
    if (bad != nullptr && FD_ISSET(i, bad)) wanted |= POLLPRI;
    if (wanted != 0) all.push_back({i, wanted, 0});
  }
  const int ready = poll_until(all.data(), all.size(), deadline, mask);
  if (ready < 0) return ready;
  for (const pollfd& p : all)
    if (p.revents & POLLNVAL) return errno = EBADF, -1;
  int bits = 0;
  auto answer = [&](fd_set* set, short wanted, short found) {
    if (set == nullptr) return;
    FD_ZERO(set);
    for (const pollfd& p : all)
      if ((p.events & wanted) && (p.revents & found)) FD_SET(p.fd, set), ++bits;
  };
  answer(in, POLLIN, POLLIN | POLLHUP | POLLERR);
  answer(out, POLLOUT, POLLOUT | POLLERR);
  answer(bad, POLLPRI, POLLPRI);
  return bits;
}

}  // namespace

MAYA_WRAPPER int poll(pollfd* descriptors, nfds_t count, int ms) {
  if (!in_virtual_time() || ms < 0) return real_poll.get()(descriptors, count, ms);
  if (ms == 0) return at_once(real_poll.get()(descriptors, count, 0));
  return poll_until(descriptors, count, time_after(std::int64_t{ms} * 1'000'000), nullptr);
}

MAYA_WRAPPER int ppoll(pollfd* descriptors, nfds_t count, const timespec* t, const sigset_t* mask) {
  if (!in_virtual_time() || t == nullptr || !valid_timespec(*t) || t->tv_sec < 0)
    return real_ppoll.get()(descriptors, count, t, mask);
  if (to_ns(*t) == 0) return at_once(real_ppoll.get()(descriptors, count, t, mask));
  return poll_until(descriptors, count, time_after(to_ns(*t)), mask);
}

// What _FORTIFY_SOURCE makes of them.
MAYA_WRAPPER int __poll_chk(pollfd* descriptors, nfds_t count, int ms, std::size_t bytes) {
  if (bytes / sizeof *descriptors < count) abort();
  return poll(descriptors, count, ms);
}

MAYA_WRAPPER int __ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* t,
                             const sigset_t* mask, std::size_t bytes) {
  if (bytes / sizeof *descriptors < count) abort();
  return ppoll(descriptors, count, t, mask);
}

MAYA_WRAPPER int epoll_pwait(int epoll, epoll_event* events, int most, int ms,
                             const sigset_t* mask) {
  if (!in_virtual_time() || ms < 0) return real_epoll_pwait.get()(epoll, events, most, ms, mask);
  if (ms == 0) return at_once(real_epoll_pwait.get()(epoll, events, most, 0, mask));
  return epoll_until(epoll, events, most, time_after(std::int64_t{ms} * 1'000'000), mask);
}

MAYA_WRAPPER int epoll_wait(int epoll, epoll_event* events, int most, int ms) {
  if (!in_virtual_time() || ms < 0) return real_epoll_wait.get()(epoll, events, most, ms);
  return epoll_pwait(epoll, events, most, ms, nullptr);
}

MAYA_WRAPPER int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* t,
                              const sigset_t* mask) {
  if (!in_virtual_time() || t == nullptr || !valid_timespec(*t) || t->tv_sec < 0)
    return real_epoll_pwait2.get()(epoll, events, most, t, mask);
  if (to_ns(*t) == 0) return epoll_pwait(epoll, events, most, 0, mask);
  return epoll_until(epoll, events, most, time_after(to_ns(*t)), mask);
}

MAYA_WRAPPER int select(int count, fd_set* in, fd_set* out, fd_set* bad, timeval* t) {
  if (!in_virtual_time() || t == nullptr || t->tv_sec < 0 || t->tv_usec < 0)
    return real_select.get()(count, in, out, bad, t);
  const std::int64_t ns = to_ns({t->tv_sec, 0}) + std::min<std::int64_t>(t->tv_usec, second) * 1000;
  if (ns == 0) return at_once(real_select.get()(count, in, out, bad, t));
  const std::int64_t deadline = time_after(ns);
  const int result = select_until(count, in, out, bad, deadline, nullptr);
  const std::int64_t left = std::max<std::int64_t>(deadline - thread_now(), 0);
  *t = {left / second, left % second / 1000};
  return result;
}

MAYA_WRAPPER int pselect(int count, fd_set* in, fd_set* out, fd_set* bad, const timespec* t,
                         const sigset_t* mask) {
  if (!in_virtual_time() || t == nullptr || !valid_timespec(*t) || t->tv_sec < 0)
    return real_pselect.get()(count, in, out, bad, t, mask);
  if (to_ns(*t) == 0) return at_once(real_pselect.get()(count, in, out, bad, t, mask));
  return select_until(count, in, out, bad, time_after(to_ns(*t)), mask);
}
