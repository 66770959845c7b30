#include "session/stop.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <ctime>
#include <string>

#include "session/absence.h"
#include "session/python_code.h"
#include "session/quiet_thread.h"
#include "session/state.h"

namespace maya::session {
namespace {

constexpr std::uint32_t go_on = 0, leave_now = 2;

std::atomic<std::uint32_t> never{go_on};
std::atomic<bool> closing{};  // one thread closes the recording

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Sleeps until the word changes from `value`, at most so long.
void sleep_while(std::uint32_t value, double limit) {
  timespec t{static_cast<time_t>(limit),
             static_cast<long>((limit - static_cast<double>(static_cast<time_t>(limit))) * 1e9)};
  syscall(SYS_futex, stop_word, FUTEX_WAIT, value, &t, nullptr, 0);
}

// What the program has printed so far is the user's.
void flush_python() {
  run_python(
      "import sys\n"
      "for stream in (sys.stdout, sys.stderr):\n"
      "  try: stream.flush()\n"
      "  except BaseException: pass\n",
      "the output of the program may be incomplete");
}

std::atomic<bool> flushed{};

void* flush_with_lock(void*) {
  if (PythonLock lock; lock) flush_python();
  flushed = true;
  return nullptr;
}

// The thread that holds the interpreter's lock may wait for this one: so not for long.
void flush_output() {
  if (ftrylockfile(stdout) == 0) {
    std::fflush(stdout);
    funlockfile(stdout);
  }
  auto* locked = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  if (locked == nullptr || !has_python()) return;
  if (locked() != 0) return flush_python();
  constexpr double patience_seconds = 1;
  start_quiet_thread(flush_with_lock);
  const double start = seconds(CLOCK_MONOTONIC);
  while (!flushed && seconds(CLOCK_MONOTONIC) - start < patience_seconds) usleep(2000);
}

[[noreturn]] void leave() {
  leave_job();
  syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

[[noreturn]] void close_and_leave() {
  if (!closing.exchange(true)) {
    flush_output();
    state().recorder.finish();
  }
  // The launcher says when; without one nobody would.
  constexpr double patience_seconds = 60;
  const double start = seconds(CLOCK_MONOTONIC);
  for (std::uint32_t word; (word = stop_word->load()) != leave_now;) {
    if (seconds(CLOCK_MONOTONIC) - start > patience_seconds) break;
    sleep_while(word, 1);
  }
  leave();
}

// Whether the program will not come to a launch soon: it is asleep, or works on something else for
// long.
bool asleep_or_elsewhere() {
  constexpr double look_seconds = 0.1, asleep_seconds = 1, elsewhere_seconds = 10;
  double idle = 0, used = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double start = seconds(CLOCK_MONOTONIC);
  while (!closing && *stop_word != leave_now) {
    sleep_while(1, look_seconds);
    const double now = seconds(CLOCK_PROCESS_CPUTIME_ID);
    idle = now - used < look_seconds / 20 ? idle + look_seconds : 0;
    used = now;
    if (idle >= asleep_seconds || seconds(CLOCK_MONOTONIC) - start > elsewhere_seconds) return true;
  }
  return false;
}

void* watch(void*) {
  while (*stop_word == go_on) sleep_while(go_on, 3600);
  asleep_or_elsewhere();
  close_and_leave();
}

void forget_in_child() { stop_word = &never; }

}  // namespace

std::atomic<std::uint32_t>* stop_word = &never;

void stop_here() { close_and_leave(); }

void await_stop() {
  const std::string& run = state().settings.run_directory;
  static std::atomic<bool> watched{};  // several threads may touch the device first
  if (run.empty() || stop_word != &never || watched.exchange(true)) return;
  const int file = ::open((run + "/stop").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* map = mmap(nullptr, sizeof *stop_word, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (map == MAP_FAILED) return;
  stop_word = static_cast<std::atomic<std::uint32_t>*>(map);
  if (stop_asked()) {
    flush_output();
    leave();
  }
  // A child that is forked from here has no such thread, and the device is not its own.
  pthread_atfork(nullptr, nullptr, forget_in_child);
  start_quiet_thread(watch);
}

}  // namespace maya::session
