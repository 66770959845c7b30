#include "session/waiting.h"

#include <sys/stat.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "session/python_code.h"
#include "session/quiet_thread.h"
#include "session/state.h"

namespace maya::session {

extern const char waiting[];  // generated from waiting.py, ends in 0

namespace {

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

int patience_seconds() {
  const char* text = std::getenv("MAYA_WAIT_REPORT");
  return text != nullptr ? std::atoi(text) : 30;
}

// Of this process, set before the thread that watches begins.
std::string* run_directory = nullptr;
int own_rank = -1;

// May wait for the interpreter's lock for ever: hence a thread of its own.
void* say_where(void*) {
  PythonLock lock;
  if (!lock) return nullptr;
  mkdir((*run_directory + "/exchange").c_str(), 0755);
  run_python("rank = " + std::to_string(own_rank) +
                 "\nseconds = " + std::to_string(patience_seconds()) + "\n" + waiting,
             "where this rank waits cannot be told");
  return nullptr;
}

// The main thread wants the processor. On a crowded machine it may hardly get it.
bool wants_to_run() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() && text[name_end + 2] == 'R';
}

// The process waits when none of its threads uses the processor.
void* watch(void*) {
  const int patience = patience_seconds();
  const timespec look{patience < 10 ? 1 : 5, 0};
  double used = processor_seconds();
  long idle = 0;
  for (;;) {
    nanosleep(&look, nullptr);
    const double now = processor_seconds();
    constexpr double busy_share = 0.05;
    const bool busy = now - used >= busy_share * static_cast<double>(look.tv_sec);
    idle = busy || wants_to_run() ? 0 : idle + look.tv_sec;
    used = now;
    // Again where it comes to wait elsewhere; waiting.py says each place once.
    if (idle >= patience && (idle - patience) % (10L * patience) < look.tv_sec)
      start_quiet_thread(say_where);
  }
}

}  // namespace

void report_long_waits() {
  // A rank may have to wait before it touches the device, which there is not until then.
  const Settings settings = device_used() ? state().settings : Settings::from_environment();
  if (settings.run_directory.empty() || settings.rank < 0 || settings.world_size < 2) return;
  static std::atomic<bool> started{};
  if (patience_seconds() <= 0 || started.exchange(true)) return;
  run_directory = new std::string(settings.run_directory);  // kept: the thread outlives main
  own_rank = settings.rank;
  start_quiet_thread(watch);
}

}  // namespace maya::session
