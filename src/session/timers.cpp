#include "session/timers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>

#include "clock/system_call.h"
#include "session/timed_wait.h"
#include "session/virtual_time.h"

namespace maya::session {
namespace {

using clock::system_call;

constexpr std::int64_t never = INT64_MAX;
// Shorter periods are served together: the kernel, too, counts what nobody has fetched yet.
constexpr std::int64_t shortest_period = 50'000;

enum class What : std::uint8_t { nothing, alarm, descriptor, signal };

struct Timer {
  What what{What::nothing};
  int clock{};
  TimerSetting setting;
  std::int64_t fired{};  // last
  std::uint64_t missed{};
  // Descriptors: ours for writing, and what the kernel calls the file behind it.
  int writes{-1};
  std::uint64_t file{};
  sigevent event{};
  std::uint32_t number{};

  std::int64_t unread{};  // descriptors: nobody has read since then; 0: somebody has

  // What nobody reads is looked after less and less often, as one who asks again and again is.
  std::int64_t due() const {
    if (setting.next == 0) return never;
    if (fired == 0) return setting.next;
    const std::int64_t rest = unread == 0 ? 0 : (fired - unread) / 8;
    return std::max(setting.next, fired + std::max(shortest_period, rest));
  }
};

// In the C library's memory and under a lock of our own: the helper thread and signal handlers use
// it too.
struct Timers {
  static constexpr std::uint32_t most = 4096;
  std::atomic_flag held = ATOMIC_FLAG_INIT;
  Timer* all{};
  std::uint32_t count{}, numbers{};
  std::int32_t process{};

  void lock() {
    while (held.test_and_set(std::memory_order_acquire)) system_call(SYS_sched_yield);
  }
  void unlock() { held.clear(std::memory_order_release); }
  Timer* make(What what) {
    if (all == nullptr) all = static_cast<Timer*>(calloc(most, sizeof(Timer)));
    if (all == nullptr) return nullptr;
    process = getpid();
    for (std::uint32_t i = 0; i < most; ++i) {
      if (all[i].what != What::nothing) continue;
      all[i] = Timer{};
      all[i].what = what;
      count = std::max(count, i + 1);
      return &all[i];
    }
    return nullptr;
  }
  template <class Wanted>
  Timer* find(Wanted&& wanted) {
    for (std::uint32_t i = 0; i < count; ++i)
      if (all[i].what != What::nothing && wanted(all[i])) return &all[i];
    return nullptr;
  }
  Timer* numbered(std::uint32_t number) {
    return find([=](const Timer& t) { return t.what == What::signal && t.number == number; });
  }
};

constinit Timers timers;

// A signal handler that sets a timer must not meet its own thread in the lock.
class Locked {
 public:
  Locked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    timers.lock();
  }
  ~Locked() {
    timers.unlock();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  sigset_t before_{};
};

// Which descriptors may be timers: numbers are used again, so this is a hint that is verified.
constexpr int marked = 1 << 16;
std::atomic<bool> marks[marked];

// The kernel's number of the eventfd behind a descriptor; 0: it is none.
std::uint64_t event_file(int descriptor) {
  char path[48] = "/proc/self/fdinfo/", text[512];
  char* end = path + strlen(path);
  char digits[12];
  int n = 0;
  for (int rest = std::max(descriptor, 0); n == 0 || rest > 0; rest /= 10)
    digits[n++] = static_cast<char>('0' + rest % 10);
  while (n > 0) *end++ = digits[--n];
  *end = '\0';
  const long file =
      system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const long got = system_call(SYS_read, file, reinterpret_cast<long>(text), sizeof text - 1);
  system_call(SYS_close, file);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* found = strstr(text, "eventfd-id:");
  return found == nullptr ? 0 : strtoull(found + strlen("eventfd-id:"), nullptr, 10) + 1;
}

// Other descriptors of the same file; whether there are any.
bool mark_duplicates(std::uint64_t file, int descriptor, int ours) {
  const long folder = system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/fd"),
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  bool any = false;
  alignas(dirent64) char entries[4096];
  for (;;) {
    const long got =
        system_call(SYS_getdents64, folder, reinterpret_cast<long>(entries), sizeof entries);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const int other = atoi(entry->d_name);  // "." and "..": 0, which is looked at twice
      if (other == descriptor || other == ours || event_file(other) != file) continue;
      any = true;
      if (other < marked) marks[other] = true;
    }
  }
  system_call(SYS_close, folder);
  return any;
}

Timer* behind(int descriptor) {
  const std::uint64_t file = event_file(descriptor);
  if (file == 0) return nullptr;
  return timers.find([=](const Timer& t) { return t.what == What::descriptor && t.file == file; });
}

// What has expired and was not read is forgotten.
void drain(int descriptor) {
  std::uint64_t count = 0;
  const iovec place{&count, sizeof count};
  system_call(SYS_preadv2, descriptor, reinterpret_cast<long>(&place), 1, -1, -1, RWF_NOWAIT);
}

bool readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  const timespec none{};
  return system_call(SYS_ppoll, reinterpret_cast<long>(&one), 1, reinterpret_cast<long>(&none)) > 0;
}

void arm(Timer& timer, const TimerSetting& setting) {
  timer.setting = setting;
  timer.fired = 0;
  timer.missed = 0;
  timer.unread = 0;
}

// What the timer is set to, after the periods that the helper has not come to yet.
TimerSetting current(const Timer& timer, std::int64_t now) {
  TimerSetting setting = timer.setting;
  if (setting.next != 0 && setting.every > 0 && setting.next <= now)
    setting.next += ((now - setting.next) / setting.every + 1) * setting.every;
  return setting;
}

void send_signal(const Timer& timer, std::uint64_t missed) {
  siginfo_t info{};
  info.si_signo = timer.event.sigev_signo;
  info.si_code = SI_TIMER;
  info.si_value = timer.event.sigev_value;
  info.si_overrun = static_cast<int>(std::min<std::uint64_t>(missed, INT_MAX));
  info.si_timerid = static_cast<int>(timer.number);
  const auto detail = reinterpret_cast<long>(&info);
  if (timer.event.sigev_notify == SIGEV_THREAD_ID)
    system_call(SYS_rt_tgsigqueueinfo, getpid(), timer.event._sigev_un._tid,
                timer.event.sigev_signo, detail);
  else
    system_call(SYS_rt_sigqueueinfo, getpid(), timer.event.sigev_signo, detail);
}

struct Notice {
  void (*function)(sigval);
  sigval value;
};

void* notify(void* data) {
  const Notice notice = *static_cast<Notice*>(data);
  free(data);
  notice.function(notice.value);
  return nullptr;
}

void start_notice(const Timer& timer, std::int64_t now) {
  auto* notice = static_cast<Notice*>(malloc(sizeof(Notice)));
  if (notice == nullptr) return;
  *notice = {timer.event.sigev_notify_function, timer.event.sigev_value};
  if (!start_thread_at(now, notify, notice)) free(notice);
}

void store_alarm(const TimerSetting& setting) {
  clock::Member& member = own_member();
  member.alarm_at = setting.next;
  member.alarm_every = setting.every;
}

// Does what a timer is for; `periods` have passed.
void act(const Timer& timer, std::uint64_t periods, std::int64_t now) {
  switch (timer.what) {
    case What::nothing:
      break;
    case What::alarm:
      system_call(SYS_kill, getpid(), SIGALRM);
      break;
    case What::descriptor:
      system_call(SYS_write, timer.writes, reinterpret_cast<long>(&periods), sizeof periods);
      break;
    case What::signal:
      if (timer.event.sigev_notify == SIGEV_THREAD)
        start_notice(timer, now);
      else if (timer.event.sigev_notify != SIGEV_NONE)
        send_signal(timer, periods - 1);
      break;
  }
}

}  // namespace

bool virtual_timers() { return in_virtual_time() && start_helper(); }

TimerSetting set_alarm(const TimerSetting& setting) {
  TimerSetting before;
  {
    const Locked locked;
    Timer* timer = timers.find([](const Timer& t) { return t.what == What::alarm; });
    if (timer != nullptr) before = current(*timer, thread_now());
    if (timer == nullptr && setting.next != 0) timer = timers.make(What::alarm);
    if (timer == nullptr) return before;
    arm(*timer, setting);
  }
  store_alarm(setting);
  call_helper();
  return before;
}

TimerSetting alarm_setting() {
  const Locked locked;
  Timer* timer = timers.find([](const Timer& t) { return t.what == What::alarm; });
  return timer == nullptr ? TimerSetting{} : current(*timer, thread_now());
}

void resume_alarm() {
  const clock::Member& member = own_member();
  const TimerSetting setting{member.alarm_at.load(), member.alarm_every.load()};
  if (setting.next != 0 && start_helper()) set_alarm(setting);
}

int make_timer_descriptor(int clock, int flags) {
  const int made = eventfd(0, flags);  // the flags of both are the same bits
  if (made < 0) return made;
  const int writes = fcntl(made, F_DUPFD_CLOEXEC, 512);
  const std::uint64_t file = event_file(made);
  Timer* timer = nullptr;
  if (writes >= 0 && file != 0 && made < marked) {
    const Locked locked;
    timer = timers.make(What::descriptor);
    if (timer != nullptr) timer->clock = clock, timer->writes = writes, timer->file = file;
  }
  if (timer == nullptr) {
    system_call(SYS_close, made);
    if (writes >= 0) system_call(SYS_close, writes);
    errno = EMFILE;
    return -1;
  }
  marks[made] = true;
  return made;
}

bool may_be_timer_descriptor(int descriptor) {
  return descriptor >= 0 && descriptor < marked &&
         marks[descriptor].load(std::memory_order_relaxed);
}

bool set_timer_descriptor(int descriptor, const TimerSetting& setting) {
  {
    const Locked locked;
    Timer* timer = behind(descriptor);
    if (timer == nullptr) return false;
    arm(*timer, setting);
    drain(timer->writes);
  }
  call_helper();
  return true;
}

bool timer_descriptor(int descriptor, TimerSetting& setting, int& clock) {
  const Locked locked;
  const Timer* timer = behind(descriptor);
  if (timer == nullptr) return false;
  setting = current(*timer, thread_now());
  clock = timer->clock;
  return true;
}

void timer_descriptor_closes(int descriptor) {
  if (getpid() != timers.process) return;  // a child that shares our memory until it executes
  const Locked locked;
  Timer* timer = behind(descriptor);
  if (timer == nullptr) return;
  marks[descriptor] = false;
  if (mark_duplicates(timer->file, descriptor, timer->writes)) return;
  system_call(SYS_close, timer->writes);
  *timer = Timer{};
}

std::uint32_t make_timer(int clock, const sigevent* event) {
  const Locked locked;
  Timer* timer = timers.make(What::signal);
  if (timer == nullptr) return 0;
  timer->clock = clock;
  timer->number = ++timers.numbers;
  timer->event.sigev_notify = SIGEV_SIGNAL;
  timer->event.sigev_signo = SIGALRM;
  timer->event.sigev_value.sival_int = static_cast<int>(timer->number);
  if (event != nullptr) timer->event = *event;
  return timer->number;
}

bool set_timer(std::uint32_t number, const TimerSetting& setting) {
  {
    const Locked locked;
    Timer* timer = timers.numbered(number);
    if (timer == nullptr) return false;
    arm(*timer, setting);
  }
  call_helper();
  return true;
}

bool timer_setting(std::uint32_t number, TimerSetting& setting, int& clock) {
  const Locked locked;
  const Timer* timer = timers.numbered(number);
  if (timer == nullptr) return false;
  setting = current(*timer, thread_now());
  clock = timer->clock;
  return true;
}

int timer_overrun(std::uint32_t number) {
  const Locked locked;
  const Timer* timer = timers.numbered(number);
  return timer == nullptr ? -1 : static_cast<int>(std::min<std::uint64_t>(timer->missed, INT_MAX));
}

bool remove_timer(std::uint32_t number) {
  const Locked locked;
  Timer* timer = timers.numbered(number);
  if (timer != nullptr) *timer = Timer{};
  return timer != nullptr;
}

std::int64_t earliest_timer() {
  if (timers.count == 0) return never;
  const Locked locked;
  std::int64_t earliest = never;
  for (std::uint32_t i = 0; i < timers.count; ++i)
    if (timers.all[i].what != What::nothing) earliest = std::min(earliest, timers.all[i].due());
  return earliest;
}

void fire_timers(std::int64_t now) {
  for (;;) {
    // In their order, and without the lock: what a timer does may be a signal to its owner.
    Timer due;
    std::uint64_t periods = 1;
    {
      const Locked locked;
      Timer* first = nullptr;
      for (std::uint32_t i = 0; i < timers.count; ++i) {
        Timer& t = timers.all[i];
        if (t.what != What::nothing && t.due() <= now &&
            (first == nullptr || t.due() < first->due()))
          first = &t;
      }
      if (first == nullptr) return;
      TimerSetting& setting = first->setting;
      if (setting.every > 0) {
        periods = static_cast<std::uint64_t>((now - setting.next) / setting.every) + 1;
        setting.next += static_cast<std::int64_t>(periods) * setting.every;
      } else {
        setting.next = 0;
      }
      if (first->what != What::descriptor || !readable(first->writes))
        first->unread = 0;
      else if (first->unread == 0)
        first->unread = now;
      first->fired = now;
      first->missed = periods - 1;
      due = *first;
      if (due.what == What::descriptor) act(due, periods, now);  // before it can be closed
    }
    if (due.what == What::alarm) store_alarm(due.setting);
    if (due.what != What::descriptor) act(due, periods, now);
  }
}

void forget_timers() {
  timers.held.clear();
  for (std::uint32_t i = 0; i < timers.count; ++i) {
    if (timers.all[i].what == What::descriptor) system_call(SYS_close, timers.all[i].writes);
    timers.all[i] = Timer{};
  }
  timers.count = 0;
  timers.process = getpid();
}

}  // namespace maya::session
