#include "session/virtual_time.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "clock/system_call.h"
#include "session/host_clock.h"
#include "session/live_device.h"
#include "session/next.h"
#include "session/settings.h"
#include "session/timed_wait.h"
#include "session/timers.h"
#include "session/virtual_counter.h"
#include "values/exchange.h"

namespace maya::session {

clock::Domain* time_domain = nullptr;

namespace {

struct ThreadTime {
  clock::Place* place{};
  std::int64_t origin{};  // time less what the thread worked
  std::int64_t asked{};   // what the thread had worked when thread_worked was last called
  std::int64_t read{};    // latest time that the program was told
  std::int64_t spins_began{}, last_spin{};
  bool asks_device{};  // it spins on its device, too
  std::uint32_t spins{};
  bool outside{};
  ~ThreadTime() {
    // The thread has still to end, and whoever joins it to be woken: the arbiter takes its place
    // back when the kernel does not know it any more.
    place = nullptr;
    outside = true;  // other destructors may still ask for the time
  }
};

thread_local constinit ThreadTime own;
std::uint64_t ns_per_tick_q32 = 0;  // on the target host

std::int64_t worked_ns() {
  return static_cast<std::int64_t>(
      (static_cast<unsigned __int128>(host_clock().worked()) * ns_per_tick_q32) >> 32);
}

std::int32_t kernel_thread() { return static_cast<std::int32_t>(clock::system_call(SYS_gettid)); }

std::int64_t real_origin = 0;  // of a process without a domain

void publish(std::int64_t time) {
  if (own.place == nullptr) return;
  own.place->time.store(time, std::memory_order_relaxed);
  auto& latest = time_domain->member(*own.place).latest;
  if (latest.load(std::memory_order_relaxed) < time) latest.store(time, std::memory_order_relaxed);
}

// Somebody woke this thread: he was at the time that this process, or the job, has reached.
std::int64_t join(std::int64_t time) {
  const std::int64_t reached = std::max(
      time_domain->now(), time_domain->member(*own.place).latest.load(std::memory_order_relaxed));
  if (reached > time) {
    own.origin += reached - time;
    time = reached;
  }
  own.place->state = clock::State::running;
  return time;
}

// Asleep while time passed: for the machine that may have been microseconds.
bool was_blocked() {
  if (own.place == nullptr) return false;
  const clock::State state = own.place->state.load(std::memory_order_relaxed);
  return state == clock::State::blocked || state == clock::State::woken;
}

void take_part(std::int64_t time) {
  own.place = time_domain->join(getpid(), kernel_thread(), time);
  own.origin = time - worked_ns();
  if (own.place == nullptr) own.outside = true;
}

void fork_in_child() {
  if (time_domain == nullptr || own.outside) return;
  const std::int64_t time = own.origin + worked_ns();
  host_clock() = HostClock();
  own.place = time_domain->find(getpid(), getpid());  // the parent may have seen to it
  own.origin = time;
  if (own.place == nullptr) take_part(time);
  forget_sleepers();
}

struct Started {
  void* (*routine)(void*);
  void* argument;
  clock::Place* place;  // taken by the creator: from then on the new thread can act
};

void* run_thread(void* data) {
  const std::unique_ptr<Started> started(static_cast<Started*>(data));
  own.place = started->place;
  own.origin = own.place->time.load() - worked_ns();
  own.place->thread = kernel_thread();
  return started->routine(started->argument);
}

using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
constinit const Next<Create> real_create("pthread_create");

}  // namespace

void enter_virtual_time() {
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (run == nullptr || *run == '\0' || time_domain != nullptr) return;
  auto* domain = clock::Domain::attach(std::string(run) + "/clock");
  if (domain == nullptr) return;
  HostClock::calibrate(domain->ns_per_tick());
  ns_per_tick_q32 =
      static_cast<std::uint64_t>(domain->ns_per_tick() * domain->scale() * 4294967296.0);
  time_domain = domain;
  const std::int32_t process = getpid();
  // A program that replaced another goes on in its time; one that was started by a thread of the
  // job begins where that is.
  std::int64_t time = domain->now();
  bool replaced = false;
  if (clock::Place* place = domain->find(process, process)) {
    own.place = place;
    const auto used =
        static_cast<double>(clock::real_ns(CLOCK_THREAD_CPUTIME_ID)) * domain->scale();
    own.origin = std::max(time, place->time.load()) - static_cast<std::int64_t>(used);
    place->state = clock::State::running;
    replaced = true;
    domain->leave_others(*place);  // exec has ended them, some before they had begun
  } else {
    if (clock::Place* parent = domain->find(getppid(), getppid()))
      time = std::max(time, domain->member(*parent).latest.load());
    take_part(time);
  }
  if (own.place != nullptr) {
    const int rank = rank_in_environment();
    domain->member(*own.place).rank = rank;
  }
  pthread_atfork(nullptr, nullptr, fork_in_child);
  if (replaced) resume_alarm();
  values::exchange_waits = {[] { return time_domain->news(); },
                            [](std::uint32_t seen, int round) {
                              live_await_news(seen, round < 50 ? 1'000'000 : 10'000'000);
                            },
                            [] { thread_woke(false); }, [] { time_domain->tell(); }};
}

void follow_real_time() {
  if (time_domain == nullptr && real_origin == 0) real_origin = clock::real_ns();
}

void child_starts(int process) {
  if (time_domain == nullptr || own.place == nullptr || process <= 0) return;
  if (time_domain->find(process, process) != nullptr) return;
  time_domain->join(process, process, own.place->time.load());
}

bool start_thread_at(std::int64_t time, void* (*routine)(void*), void* argument) {
  clock::Place* place = time_domain->join(getpid(), 0, time);
  if (place == nullptr) return false;
  auto started = std::make_unique<Started>(Started{routine, argument, place});
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const bool made = real_create.get()(&thread, &detached, run_thread, started.get()) == 0;
  pthread_attr_destroy(&detached);
  if (made)
    static_cast<void>(started.release());
  else
    time_domain->leave(*place);
  return made;
}

bool in_virtual_time() {
  return time_domain != nullptr && own.place != nullptr && !own.outside && !host_clock().inside();
}

std::int64_t thread_now() {
  if (own.place == nullptr)
    return time_domain != nullptr ? time_domain->now() : clock::real_ns() - real_origin;
  HostClock& clock = host_clock();
  clock.pass();
  std::int64_t time = own.origin + worked_ns();
  if (clock.slept() || was_blocked()) [[unlikely]]
    time = join(time);
  publish(time);
  return time;
}

void thread_spends(std::int64_t ns) { own.origin += ns; }

std::int64_t thread_worked() {
  const std::int64_t worked = worked_ns(), since = worked - own.asked;
  own.asked = worked;
  return since;
}

std::int64_t thread_gives_back(std::int64_t ns) {
  if (own.place == nullptr) return thread_now();
  const std::int64_t time = own.origin + worked_ns();
  const std::int64_t given =
      std::clamp<std::int64_t>(ns, 0, std::max<std::int64_t>(time - own.read, 0));
  own.origin -= given;
  publish(time - given);
  return time - given;
}

std::int64_t thread_reads() { return own.read = thread_now(); }

namespace {

// Readings of one calibration, in their order. The profiler compares the k-th of the first with the
// k-th of the second and takes the median, so that a preemption in between does not matter; so do
// we. The first readings are those by which a calibration is recognised.
struct Readings {
  static constexpr std::uint32_t most = 980, recognised = 16;
  Calibration all[most];
  std::uint32_t count{};
};

std::mutex calibrations_mutex;
std::unique_ptr<Readings> calibrations[2];  // the latest is the second

struct Row {
  std::uint64_t last{};
  std::uint32_t close{};  // readings one right after the other
  Readings* into{};       // those of the calibration that is going on
};
constinit thread_local Row row;

}  // namespace

void notice_calibration(std::int64_t time) {
  // In ticks: a few microseconds, and longer than a preemption takes.
  constexpr std::uint64_t close = 20'000, far = 500'000'000;
  const std::uint64_t now = HostClock::ticks(), gap = now - row.last;
  row.last = now;
  row.close = gap < close ? row.close + 1 : 0;
  if (row.into == nullptr && row.close < Readings::recognised) [[likely]]
    return;
  std::lock_guard guard(calibrations_mutex);
  if (row.into == nullptr) {
    if (row.close != Readings::recognised) return;
    calibrations[0] = std::move(calibrations[1]);
    calibrations[1] = std::make_unique<Readings>();
    row.into = calibrations[1].get();
    // The allocator and the process group also calibrate, once each, for their histories.
    constexpr int of_others = 2;
    static int seen = 0;
    if (++seen > of_others) counter_follows_time();
  }
  // Of another thread since, or over.
  const bool current = row.into == calibrations[1].get();
  if (current && gap < far && row.into->count < Readings::most)
    row.into->all[row.into->count++] = {time, now};
  if (!current || gap >= far || row.into->count == Readings::most) row.into = nullptr;
}

bool profiler_calibrations(Calibration& begin, Calibration& end) {
  std::lock_guard guard(calibrations_mutex);
  if (calibrations[0] == nullptr) return false;
  const Readings &first = *calibrations[0], &second = *calibrations[1];
  const std::uint32_t count = std::min(first.count, second.count);
  if (count == 0) return false;
  auto rate = [&](std::uint32_t i) {
    return static_cast<double>(second.all[i].time - first.all[i].time) /
           static_cast<double>(second.all[i].ticks - first.all[i].ticks);
  };
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const auto middle = order.begin() + count / 2;
  std::nth_element(order.begin(), middle, order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return rate(a) < rate(b); });
  begin = first.all[*middle], end = second.all[*middle];
  return end.time > begin.time;
}

namespace {

bool sleep_until(std::int64_t deadline, clock::Waits waits, bool worked) {
  const std::int64_t now = thread_now();
  if (deadline <= now) return true;
  if (own.place == nullptr) {
    if (time_domain == nullptr) clock::pause_ns(deadline - now);
    return true;
  }
  if (worked) time_domain->acted(now);
  const bool came = time_domain->sleep(*own.place, now, deadline, waits);
  thread_woke(came);
  return came;
}

}  // namespace

bool thread_sleeps_until(std::int64_t deadline, clock::Waits waits) {
  return sleep_until(deadline, waits, true);
}

void thread_woke(bool by_time) {
  if (own.place == nullptr) return;
  host_clock().reanchor();
  host_clock().pass_over();
  std::int64_t reached = own.place->time.load();
  if (!by_time)
    reached =
        std::max({reached, time_domain->now(), time_domain->member(*own.place).latest.load()});
  const std::int64_t time = own.origin + worked_ns();
  if (reached > time) own.origin += reached - time;
  publish(std::max(reached, time));
}

void thread_resumes() {
  if (own.place == nullptr) return;
  host_clock().woken();
  publish(join(own.origin + worked_ns()));
}

void thread_spins(bool for_others) {
  constexpr std::int64_t close = 100'000;  // rounds further apart do something in between
  constexpr std::uint32_t rounds = 8;
  const std::int64_t now = thread_now();
  if (now - own.last_spin > close) own.spins = 0;
  if (own.spins == 0) own.spins_began = now, own.asks_device = false;
  own.last_spin = now;
  own.asks_device |= !for_others;
  for_others = !own.asks_device;
  if (++own.spins <= rounds) return;
  std::int64_t since = own.spins_began;
  if (for_others && time_domain != nullptr)
    since = std::clamp(time_domain->header().device_done.load(), since, now);
  // Whoever has waited for seconds (while another process compiles) need not ask every millisecond.
  constexpr std::int64_t shortest = 2'000, usual = 1'000'000;
  const std::int64_t waited = now - since, longest = std::max(usual, waited / 64);
  sleep_until(now + std::clamp(waited / 8, shortest, longest),
              for_others ? clock::Waits::spinning : clock::Waits::on_word, own.spins == rounds + 1);
  own.last_spin = thread_now();
}

void thread_did_work() { own.spins = 0; }

OutsideTime::OutsideTime() : before_(own.outside) { own.outside = true; }
OutsideTime::~OutsideTime() { own.outside = before_; }

clock::Place* own_place() { return own.place; }

}  // namespace maya::session

MAYA_WRAPPER int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                void* (*routine)(void*), void* argument) noexcept {
  using namespace maya::session;
  if (time_domain == nullptr || own.outside || own.place == nullptr)
    return real_create.get()(thread, attributes, routine, argument);
  counter_follows_time_in(reinterpret_cast<const void*>(routine));
  maya::clock::Place* place = time_domain->join(own.place->process.load(), 0, thread_now());
  if (place == nullptr) return real_create.get()(thread, attributes, routine, argument);
  auto started = std::make_unique<Started>(Started{routine, argument, place});
  const int result = real_create.get()(thread, attributes, run_thread, started.get());
  if (result == 0)
    static_cast<void>(started.release());
  else
    time_domain->leave(*place);
  return result;
}
