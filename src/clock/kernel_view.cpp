#include "clock/kernel_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace maya::clock {
namespace {

constexpr int most_open = 600;  // below the usual limit of 1024

// The 20th field of a stat file; the third stands behind the name.
long threads_left(const char* name_end) {
  const char* at = name_end;
  for (int field = 2; field < 20 && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
  return at != nullptr ? std::strtol(at, nullptr, 10) : 0;
}

}  // namespace

KernelView::~KernelView() {
  for (Thread& t : threads_) close(t);
}

void KernelView::close(Thread& t) {
  for (int* file : {&t.stat, &t.schedstat, &t.syscall}) {
    if (*file < 0) continue;
    ::close(*file);
    *file = -1;
    --open_;
  }
}

KernelView::Thread& KernelView::thread(std::uint32_t index, std::int32_t process, std::int32_t id) {
  if (index >= threads_.size()) threads_.resize(index + 1);
  Thread& t = threads_[index];
  if (t.process != process || t.thread != id) {
    close(t);
    t = {process, id};
  }
  return t;
}

// Of an open file of a thread that has ended, a read fails.
long KernelView::read(Thread& t, int& file, const char* name, char* text, std::size_t size) {
  int use = file;
  if (use < 0) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/%s", t.process, t.thread, name);
    use = ::open(path, O_RDONLY | O_CLOEXEC);
    if (use < 0) return -1;
  }
  const ssize_t got = pread(use, text, size - 1, 0);
  if (file < 0) {
    if (open_ < most_open)
      file = use, ++open_;
    else
      ::close(use);
  }
  if (got > 0) text[got] = '\0';
  return got;
}

bool KernelView::schedule(Thread& t, Sight& sight) {
  char text[128];
  if (read(t, t.schedstat, "schedstat", text, sizeof text) <= 0) return false;
  char* at = text;
  sight.cpu_ns = static_cast<std::int64_t>(std::strtoull(at, &at, 10));
  std::strtoull(at, &at, 10);
  sight.turns = std::strtoull(at, &at, 10);
  return true;
}

std::uint64_t KernelView::turns(std::uint32_t index, std::int32_t process, std::int32_t id) {
  Sight sight;
  return schedule(thread(index, process, id), sight) ? sight.turns : 0;
}

// Of a thread that does not run the kernel names the system call. Empty: the file is not for us.
// One that was just woken from another processor still counts as not running: ask "stat" after it.
std::optional<bool> KernelView::off_processor(Thread& t) {
  char text[256];
  if (read(t, t.syscall, "syscall", text, sizeof text) <= 0) return {};
  return std::strncmp(text, "running", 7) != 0;
}

Sight KernelView::look(std::uint32_t index, std::int32_t process, std::int32_t id) {
  Thread& t = thread(index, process, id);
  Sight sight;
  if (!schedule(t, sight)) {
    close(t);
    return sight;
  }
  // A thread on its way to sleep is in state S before it has left its processor, and when it is
  // woken there it goes on without a new turn. Once it has left, it cannot run without one.
  const bool left = t.asleep_turns == sight.turns || off_processor(t).value_or(true);
  char text[512];
  if (read(t, t.stat, "stat", text, sizeof text) <= 0) {
    close(t);
    return sight;
  }
  const char* name_end = std::strrchr(text, ')');
  const char state = name_end != nullptr && name_end[1] == ' ' ? name_end[2] : 'Z';
  switch (state) {
    case 'S':
    case 'I':
      sight.what = left ? Sight::What::asleep : Sight::What::at_work;
      if (left) t.asleep_turns = sight.turns;
      break;
    case 'T':
    case 't':
      sight.what = Sight::What::stopped;
      break;
    case 'Z':
    case 'X':
      // Of a process that ends, the first thread is gone before the others are: only then can its
      // parent know.
      sight.what = threads_left(name_end) > 1 ? Sight::What::at_work : Sight::What::gone;
      break;
    default:
      sight.what = Sight::What::at_work;
  }
  return sight;
}

}  // namespace maya::clock
