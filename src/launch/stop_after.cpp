#include "launch/stop_after.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "maya/collate.h"
#include "maya/trace.h"

namespace maya::launch {

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t close_recordings = 1, leave = 2;
constexpr std::size_t first_records = 1 << 19;

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

StopAfter::StopAfter(std::string directory, int steps, std::vector<int> ranks)
    : directory_(std::move(directory)),
      steps_(static_cast<std::uint32_t>(steps)),
      ranks_(std::move(ranks)) {
  const std::string path = directory_ + "/stop";
  ::unlink(path.c_str());  // processes of an earlier start keep their own file
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  void* map = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof *word_) == 0)
    map = mmap(nullptr, sizeof *word_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) failure_ = fmt::format("cannot make {}: {}", path, std::strerror(errno));
  if (file >= 0) ::close(file);
  if (!failure_.empty()) return;
  word_ = static_cast<std::atomic<std::uint32_t>*>(map);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StopAfter::~StopAfter() {
  {
    std::lock_guard guard(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  ::unlink((directory_ + "/stop").c_str());  // a later start must not find it raised
  if (word_ != nullptr) munmap(static_cast<void*>(word_), sizeof *word_);
}

Status StopAfter::status() const {
  if (!failure_.empty()) return Error{failure_};
  return {};
}

void StopAfter::watch() {
  constexpr double share = 0.05, shortest = 0.5;
  double pause = shortest;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (wake_.wait_for(lock, std::chrono::duration<double>(pause), [this] { return done_; }))
        return;
    }
    const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
    if (enough()) {
      reached_ = true;
      return;
    }
    pause = std::max(shortest, (seconds(CLOCK_THREAD_CPUTIME_ID) - before) / share);
  }
}

// A recording has a tail while its process runs.
std::vector<std::string> StopAfter::open_recordings() const {
  std::vector<std::string> open;
  std::error_code ignored;
  constexpr std::string_view ending = ".maya.tail";
  for (const auto& entry : fs::directory_iterator(directory_, ignored)) {
    std::string path = entry.path().string();
    if (path.ends_with(ending)) open.push_back(path.substr(0, path.size() - 5));
  }
  return open;
}

bool StopAfter::enough_in(const std::string& path) {
  // Small models make a hundred thousand records a second, and few steps are needed: a look reads
  // no more than it must, so that the next one comes soon.
  std::size_t& enough = records_read_.try_emplace(path, first_records).first->second;
  auto recording = trace::read(path, enough);
  if (!recording) return false;
  if (recording->records.size() >= enough) enough *= 4;
  const auto seen = collate::steady_steps(std::move(*recording));
  if (seen.certain) return seen.count >= steps_;
  // Repetition alone may be the actual work of the program (inference), but it may also be the
  // loading or filling of weights, as long as there is no matrix product. If the program has an
  // optimizer, repetition may be an evaluation before the first step or the micro-batches of one
  // step, unless the updates are not visible in the recording. These doubtful cases have to repeat
  // for longer.
  constexpr double settled_seconds = 30, doubtful_seconds = 300;
  if (seen.count < steps_) {
    repeating_.erase(path);
    return false;
  }
  const double now = seconds(CLOCK_MONOTONIC);
  Repeating& repeating = repeating_.try_emplace(path, seen.count, now, 0.0).first->second;
  // A longer pause is a compilation or a wait and does not count as repeating.
  constexpr double longest_step = 10;
  if (seen.count > repeating.count) {
    repeating.seconds += std::min(now - repeating.last, longest_step);
    repeating.count = seen.count;
    repeating.last = now;
  }
  std::error_code ignored;
  const bool has_optimizer = fs::exists(directory_ + "/exchange/optimizer", ignored);
  return repeating.seconds >
         (has_optimizer || !seen.matrix_work ? doubtful_seconds : settled_seconds);
}

bool StopAfter::enough() {
  auto open = open_recordings();
  if (open.empty()) return false;
  auto wanted = ranks_.size();
  if (wanted == 0) {
    auto first = trace::read(open.front(), 1);
    if (!first) return false;
    wanted = static_cast<std::size_t>(std::max(first->identity.world_size, 1));
  }
  if (open.size() < wanted) return false;
  std::partition(open.begin(), open.end(), [&](const auto& path) { return path == behind_; });
  for (const auto& path : open)
    if (!enough_in(path)) {
      behind_ = path;
      return false;
    }
  return true;
}

void StopAfter::raise(std::uint32_t value) {
  *word_ = value;
  syscall(SYS_futex, word_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool StopAfter::advance() {
  if (left_ || !reached_) return left_;
  const double now = seconds(CLOCK_MONOTONIC);
  if (!asked_) {
    asked_ = true;
    asked_at_ = now;
    raise(close_recordings);
  }
  constexpr double patience_seconds = 15;
  if (open_recordings().empty() || now - asked_at_ > patience_seconds) {
    left_ = true;
    raise(leave);
  }
  return left_;
}

}  // namespace maya::launch
