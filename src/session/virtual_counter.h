// The time-stamp counter of libraries that are known to stamp events with it (counter_reads.h).
// What a profiler asks for is in observation.h.
#pragma once

#include "session/observation.h"

namespace maya::session {

// As counter_follows_time, for the library that `code` is in, if it is libzmq.
void counter_follows_time_in(const void* code);

}  // namespace maya::session
