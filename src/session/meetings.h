// Collectives with next to no data, such as barriers: their purpose is that ranks meet.
//
// Nobody waits at a collective itself, as nobody does on a stream. But where the host waits for the
// stream, a barrier must have the effect that programs use it for: rank 0 writes a file (a data
// set, a checkpoint, a folder), and the others open it behind the barrier. So a host that waits for
// such a collective waits until all members have come to it. Larger ones carry data that nobody
// computed; there waiting would only slow the ranks down.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "session/progress.h"
#include "values/exchange.h"

namespace maya::session {

class Meetings {
 public:
  explicit Meetings(Progress& progress) : progress_(progress) {}

  static constexpr std::uint64_t most_bytes = 8;  // that a member contributes

  // Queued on the stream; every member posts an entry with this key.
  void queued(const Stream& stream, std::shared_ptr<maya::values::Exchange> exchange, int size,
              std::uint64_t key);
  // Waits for the other members of every meeting that the host has waited for, at most `seconds`
  // each. Whether there was something to wait for.
  bool attend(double seconds);

 private:
  struct Meeting {
    std::uint16_t stream{};
    std::uint64_t mark{};
    maya::values::HeldEntry entry;
    int size{};
  };

  Progress& progress_;
  std::mutex mutex_;
  std::deque<Meeting> meetings_;
};

Meetings& meetings();

}  // namespace maya::session
