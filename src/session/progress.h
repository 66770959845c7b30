// What the host knows to be done on the device.
//
// Nothing executes here, but a program asks (cudaEventQuery) and takes other paths when work is
// done already: PyTorch leaves out the wait for a collective that has finished. On a GPU work lags
// behind its launch, so an event counts as done only after the host has waited for it, or for
// something that came after it. A program that polls must not poll for ever: after a number of
// questions the work is done. No clock is involved, so that runs repeat themselves; except for a
// thread that only watches over others' work: it may ask once, when its patience of minutes ends,
// and must not find pending what no GPU takes seconds for. Its answer changes nobody else's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "session/objects.h"

namespace maya::session {

std::int64_t wall_ns();

class Progress {
 public:
  explicit Progress(std::int64_t (*clock)() = wall_ns) : clock_(clock) {}

  void recorded(Event& event, const Stream& stream);
  void waits(const Stream& stream, const Event& event);
  // The host waited.
  void reached(const Stream& stream);
  void reached(const Event& event);
  void reached_all();

  // A place in the work of the process, which `waited_for` asks about: everything queued so far.
  std::uint64_t mark();
  // Whether the host has waited for what was queued on the stream up to the mark.
  bool waited_for(std::uint16_t stream, std::uint64_t mark);

  bool done(Event& event);
  bool done(Stream& stream);

 private:
  struct Line {
    std::uint64_t done{};                           // every event of the stream up to this one
    std::map<std::uint16_t, std::uint64_t> waited;  // for other streams' events up to these
  };
  struct Mark {
    std::uint64_t sequence{};
    std::int64_t ns{};
  };
  void finish(std::uint16_t stream, std::uint64_t sequence);
  bool long_ago(std::uint64_t sequence);

  std::int64_t (*clock_)();
  std::mutex mutex_;
  std::uint64_t sequence_{}, all_done_{};
  std::deque<Mark> marks_;    // when events were recorded, some of them
  std::int64_t last_ns_{};    // when the last one was
  std::uint64_t long_ago_{};  // up to this one it was long ago
  std::unordered_map<std::uint16_t, Line> lines_;
};

Progress& progress();

}  // namespace maya::session
