// timerfd_create, setitimer, alarm and timer_create in virtual time (timers.h). Timers of CPU-time
// clocks are the C library's own.
#include <errno.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "session/next.h"
#include "session/session.h"
#include "session/timers.h"
#include "session/timespans.h"
#include "session/virtual_time.h"

namespace {

using namespace maya::session;

constinit const Next<int(int, int)> real_timerfd_create("timerfd_create");
constinit const Next<int(int, int, const itimerspec*, itimerspec*)> real_timerfd_settime(
    "timerfd_settime");
constinit const Next<int(int, itimerspec*)> real_timerfd_gettime("timerfd_gettime");
constinit const Next<int(int)> real_close("close");
constinit const Next<int(int, const itimerval*, itimerval*)> real_setitimer("setitimer");
constinit const Next<int(int, itimerval*)> real_getitimer("getitimer");
constinit const Next<unsigned(unsigned)> real_alarm("alarm");
constinit const Next<int(clockid_t, sigevent*, timer_t*)> real_timer_create("timer_create");
constinit const Next<int(timer_t, int, const itimerspec*, itimerspec*)> real_timer_settime(
    "timer_settime");
constinit const Next<int(timer_t, itimerspec*)> real_timer_gettime("timer_gettime");
constinit const Next<int(timer_t)> real_timer_getoverrun("timer_getoverrun");
constinit const Next<int(timer_t)> real_timer_delete("timer_delete");

bool valid(const itimerspec& t) {
  return valid_timespec(t.it_value) && valid_timespec(t.it_interval) && t.it_value.tv_sec >= 0 &&
         t.it_interval.tv_sec >= 0;
}

TimerSetting to_setting(int clock, bool absolute, const itimerspec& t) {
  const std::int64_t value = to_ns(t.it_value);
  if (value == 0) return {};
  // A time that has passed is due at once; 0 would mean that it is not set.
  const std::int64_t next = absolute ? time_at(clock, t.it_value) : time_after(value);
  return {std::max<std::int64_t>(next, 1), to_ns(t.it_interval)};
}

itimerspec to_itimerspec(const TimerSetting& setting) {
  itimerspec t{};
  if (setting.next == 0) return t;
  t.it_value = to_timespec(std::max<std::int64_t>(setting.next - thread_now(), 1));
  t.it_interval = to_timespec(setting.every);
  return t;
}

// Clocks that timers may have. The alarm clocks also wake a machine that is suspended.
bool has_timers(int& clock) {
  if (clock == CLOCK_REALTIME_ALARM) clock = CLOCK_REALTIME;
  if (clock == CLOCK_BOOTTIME_ALARM) clock = CLOCK_BOOTTIME;
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
         clock == CLOCK_TAI;
}

}  // namespace

// Descriptors ----------------------------------------------------------------------------------

MAYA_WRAPPER int timerfd_create(int clock, int flags) noexcept {
  int kind = clock;
  if (!has_timers(kind) || (flags & ~(TFD_CLOEXEC | TFD_NONBLOCK)) != 0 || !virtual_timers())
    return real_timerfd_create.get()(clock, flags);
  const Call inside;
  return make_timer_descriptor(kind, flags);
}

MAYA_WRAPPER int timerfd_settime(int descriptor, int flags, const itimerspec* t,
                                 itimerspec* before) noexcept {
  int clock = 0;
  TimerSetting old;
  if (t == nullptr || !in_virtual_time() || !timer_descriptor(descriptor, old, clock))
    return real_timerfd_settime.get()(descriptor, flags, t, before);
  if (!valid(*t)) return errno = EINVAL, -1;
  if (before != nullptr) *before = to_itimerspec(old);
  const TimerSetting setting = to_setting(clock, (flags & TFD_TIMER_ABSTIME) != 0, *t);
  set_timer_descriptor(descriptor, setting);
  return 0;
}

MAYA_WRAPPER int timerfd_gettime(int descriptor, itimerspec* t) noexcept {
  int clock = 0;
  TimerSetting setting;
  if (t == nullptr || !in_virtual_time() || !timer_descriptor(descriptor, setting, clock))
    return real_timerfd_gettime.get()(descriptor, t);
  *t = to_itimerspec(setting);
  return 0;
}

MAYA_WRAPPER int close(int descriptor) {
  if (may_be_timer_descriptor(descriptor)) timer_descriptor_closes(descriptor);
  return real_close.get()(descriptor);
}

// The process's alarm --------------------------------------------------------------------------

MAYA_WRAPPER int setitimer(__itimer_which_t which, const itimerval* t, itimerval* before) noexcept {
  if (which != ITIMER_REAL || t == nullptr || !virtual_timers())
    return real_setitimer.get()(which, t, before);
  const itimerspec spec{{t->it_interval.tv_sec, t->it_interval.tv_usec * 1000},
                        {t->it_value.tv_sec, t->it_value.tv_usec * 1000}};
  if (!valid(spec)) return errno = EINVAL, -1;
  const itimerspec old = to_itimerspec(set_alarm(to_setting(CLOCK_MONOTONIC, false, spec)));
  if (before != nullptr)
    *before = {{old.it_interval.tv_sec, old.it_interval.tv_nsec / 1000},
               {old.it_value.tv_sec, old.it_value.tv_nsec / 1000}};
  return 0;
}

MAYA_WRAPPER int getitimer(__itimer_which_t which, itimerval* t) noexcept {
  if (which != ITIMER_REAL || t == nullptr || !in_virtual_time())
    return real_getitimer.get()(which, t);
  const itimerspec now = to_itimerspec(alarm_setting());
  *t = {{now.it_interval.tv_sec, now.it_interval.tv_nsec / 1000},
        {now.it_value.tv_sec, now.it_value.tv_nsec / 1000}};
  return 0;
}

MAYA_WRAPPER unsigned alarm(unsigned seconds) noexcept {
  if (!virtual_timers()) return real_alarm.get()(seconds);
  const itimerspec spec{{}, {static_cast<time_t>(seconds), 0}};
  const itimerspec old = to_itimerspec(set_alarm(to_setting(CLOCK_MONOTONIC, false, spec)));
  // Rounded as the kernel does, but never to 0: that would mean that none was set.
  const auto left = old.it_value.tv_sec + (old.it_value.tv_nsec >= 500'000'000 ? 1 : 0);
  const bool set = old.it_value.tv_sec != 0 || old.it_value.tv_nsec != 0;
  return static_cast<unsigned>(set ? std::max<time_t>(left, 1) : 0);
}

// POSIX timers ---------------------------------------------------------------------------------

namespace {

// The C library's own are small numbers or have the highest bit set.
constexpr std::uint64_t our_timers = std::uint64_t{0x4d617961} << 32;

timer_t to_timer(std::uint32_t number) {
  return reinterpret_cast<timer_t>(our_timers | number);  // NOLINT(performance-no-int-to-ptr)
}
bool ours(timer_t timer, std::uint32_t& number) {
  const auto bits = reinterpret_cast<std::uint64_t>(timer);
  number = static_cast<std::uint32_t>(bits);
  return (bits & 0xffffffff'00000000) == our_timers;
}

bool valid(const sigevent* event) {
  if (event == nullptr || event->sigev_notify == SIGEV_NONE) return true;
  if (event->sigev_notify == SIGEV_THREAD) return event->sigev_notify_function != nullptr;
  const bool known = event->sigev_notify == SIGEV_SIGNAL || event->sigev_notify == SIGEV_THREAD_ID;
  return known && event->sigev_signo > 0 && event->sigev_signo < _NSIG;
}

}  // namespace

MAYA_WRAPPER int timer_create(clockid_t clock, sigevent* event, timer_t* timer) noexcept {
  int kind = clock;
  if (!has_timers(kind) || !valid(event) || timer == nullptr || !virtual_timers())
    return real_timer_create.get()(clock, event, timer);
  const std::uint32_t number = make_timer(kind, event);
  if (number == 0) return errno = EAGAIN, -1;
  *timer = to_timer(number);
  return 0;
}

MAYA_WRAPPER int timer_settime(timer_t timer, int flags, const itimerspec* t,
                               itimerspec* before) noexcept {
  std::uint32_t number = 0;
  if (!ours(timer, number)) return real_timer_settime.get()(timer, flags, t, before);
  int clock = 0;
  TimerSetting old;
  if (t == nullptr || !valid(*t) || !timer_setting(number, old, clock)) return errno = EINVAL, -1;
  if (before != nullptr) *before = to_itimerspec(old);
  return set_timer(number, to_setting(clock, (flags & TIMER_ABSTIME) != 0, *t)) ? 0 : -1;
}

MAYA_WRAPPER int timer_gettime(timer_t timer, itimerspec* t) noexcept {
  std::uint32_t number = 0;
  if (!ours(timer, number)) return real_timer_gettime.get()(timer, t);
  int clock = 0;
  TimerSetting setting;
  if (t == nullptr || !timer_setting(number, setting, clock)) return errno = EINVAL, -1;
  *t = to_itimerspec(setting);
  return 0;
}

MAYA_WRAPPER int timer_getoverrun(timer_t timer) noexcept {
  std::uint32_t number = 0;
  if (!ours(timer, number)) return real_timer_getoverrun.get()(timer);
  const int missed = timer_overrun(number);
  if (missed < 0) errno = EINVAL;
  return missed;
}

MAYA_WRAPPER int timer_delete(timer_t timer) noexcept {
  std::uint32_t number = 0;
  if (!ours(timer, number)) return real_timer_delete.get()(timer);
  if (remove_timer(number)) return 0;
  errno = EINVAL;
  return -1;
}
