// Describes why a class cannot continue. Separate from the event loop, which also runs inside
// training processes, where the formatting library is not available.
#include <fmt/format.h>

#include "simulate/engine.h"

namespace maya::simulate {

std::string Engine::stuck() const {
  for (const Lane& lane : lanes_)
    if (lane.head < lane.size && (lane.state == State::meeting || lane.state == State::finishing)) {
      const Communication& call = communication(lane);
      return fmt::format("record {} (communicator {}, op {}) waits for its partners", call.record,
                         call.slot, call.op);
    }
  for (const HostThread& t : threads_)
    if (t.at != none)
      return fmt::format("the host waits at record {}", program_.instructions[t.at].record);
  return "a stream waits";
}

}  // namespace maya::simulate
