#include "session/meetings.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace maya::session {
namespace {

// Of a program that never waits for its small collectives only the latest are remembered.
constexpr std::size_t most_meetings = 256;

}  // namespace

void Meetings::queued(const Stream& stream, std::shared_ptr<maya::values::Exchange> exchange,
                      int size, std::uint64_t key) {
  const std::uint64_t mark = progress_.mark();
  std::lock_guard guard(mutex_);
  if (meetings_.size() >= most_meetings) meetings_.pop_front();
  meetings_.push_back({stream.id, mark, {std::move(exchange), key}, size});
}

bool Meetings::attend(double seconds) {
  std::vector<Meeting> due;
  {
    std::lock_guard guard(mutex_);
    if (meetings_.empty()) return false;
    const auto later = std::stable_partition(
        meetings_.begin(), meetings_.end(),
        [&](const Meeting& m) { return progress_.waited_for(m.stream, m.mark); });
    due.assign(std::make_move_iterator(meetings_.begin()), std::make_move_iterator(later));
    meetings_.erase(meetings_.begin(), later);
  }
  // Without the lock: another thread may have to queue what the other members wait for.
  for (const Meeting& m : due)
    for (int member = 0; member < m.size; ++member)
      m.entry.exchange().await(member, m.entry.key(), seconds);
  return !due.empty();
}

Meetings& meetings() {
  static auto* instance = new Meetings(progress());
  return *instance;
}

}  // namespace maya::session
