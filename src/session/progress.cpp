#include "session/progress.h"

#include <time.h>

#include <algorithm>

#include "session/host_clock.h"

namespace maya::session {
namespace {

// Of one event, by one side: the thread that recorded it, or the others (NCCL's watchdog asks ten
// times a second).
constexpr std::uint16_t patience = 64;
// Work that another thread still finds pending after this is not on a GPU.
constexpr std::int64_t longest_ns = 2'000'000'000;
constexpr std::int64_t between_marks_ns = 500'000'000;

}  // namespace

std::int64_t wall_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void Progress::recorded(Event& event, const Stream& stream) {
  std::lock_guard guard(mutex_);
  event.sequence = ++sequence_;
  event.stream = stream.id;
  event.thread = thread_number();
  last_ns_ = clock_();
  if (marks_.empty() || last_ns_ - marks_.back().ns > between_marks_ns)
    marks_.push_back({sequence_, last_ns_});
  while (marks_.size() > 1 && last_ns_ - marks_.front().ns > longest_ns) {
    long_ago_ = marks_.front().sequence;
    marks_.pop_front();
  }
  event.asked[0] = event.asked[1] = 0;
}

void Progress::waits(const Stream& stream, const Event& event) {
  if (stream.id == event.stream) return;
  std::lock_guard guard(mutex_);
  auto& waited = lines_[stream.id].waited;
  waited[event.stream] = std::max(waited[event.stream], event.sequence);
  // What the other stream had waited for lies before the event too.
  if (auto other = lines_.find(event.stream); other != lines_.end())
    for (const auto& [id, sequence] : other->second.waited)
      waited[id] = std::max(waited[id], sequence);
}

void Progress::finish(std::uint16_t stream, std::uint64_t sequence) {
  Line& line = lines_[stream];
  line.done = std::max(line.done, sequence);
  for (const auto& [id, waited] : line.waited) {
    Line& other = lines_[id];
    other.done = std::max(other.done, std::min(waited, sequence));
  }
}

void Progress::reached(const Stream& stream) {
  std::lock_guard guard(mutex_);
  finish(stream.id, sequence_);
}

void Progress::reached(const Event& event) {
  std::lock_guard guard(mutex_);
  finish(event.stream, event.sequence);
}

void Progress::reached_all() {
  std::lock_guard guard(mutex_);
  all_done_ = sequence_;
}

std::uint64_t Progress::mark() {
  std::lock_guard guard(mutex_);
  return ++sequence_;
}

bool Progress::waited_for(std::uint16_t stream, std::uint64_t mark) {
  std::lock_guard guard(mutex_);
  if (mark <= all_done_) return true;
  const auto line = lines_.find(stream);
  return line != lines_.end() && mark <= line->second.done;
}

bool Progress::long_ago(std::uint64_t sequence) {
  const std::int64_t now = clock_();
  if (now - last_ns_ > longest_ns) return true;
  for (const Mark& mark : marks_)
    if (now - mark.ns > longest_ns) long_ago_ = mark.sequence;
  return sequence <= long_ago_;
}

bool Progress::done(Event& event) {
  std::lock_guard guard(mutex_);
  if (event.sequence <= all_done_) return true;
  auto line = lines_.find(event.stream);
  if (line != lines_.end() && event.sequence <= line->second.done) return true;
  const bool own = event.thread == thread_number();
  if (!own && long_ago(event.sequence)) return true;
  std::uint16_t& asked = event.asked[own ? 0 : 1];
  if (++asked < patience) return false;
  finish(event.stream, event.sequence);
  return true;
}

bool Progress::done(Stream& stream) {
  std::lock_guard guard(mutex_);
  if (!stream.busy || ++stream.asked < patience) return !stream.busy;
  finish(stream.id, sequence_);
  stream.busy = false;
  return true;
}

Progress& progress() {
  static auto* instance = new Progress;
  return *instance;
}

}  // namespace maya::session
