// The device's timeline while the program runs: each record of the recording also goes into the
// simulator's model (simulate/live.h), which tells how long the calling thread waits, when events
// were reached and, for a profiler, what ran when.
#pragma once

#include <cstdint>

#include "maya/trace.h"
#include "session/observation.h"

namespace maya::session {

// Whether there is such a timeline. It is made with the first use of the device where time is
// virtual, or when a profiler asks for it.
bool device_is_live();
bool device_is_observed();  // by a profiler
void make_device_live();

// A call is about to be recorded: the calling thread's time, with its host time settled
// (settled_time.h). The record gets what counts, so that a prediction has the times that the
// program saw.
std::int64_t live_time_of(trace::Record& record);
// A call was recorded: its thread spends and waits what the model says.
void live_call(const trace::Record& record, const trace::Record* wide, std::int64_t time);

// When the event's latest record was reached, by `wait` or so far; -1: not yet, -2: never recorded.
std::int64_t live_event_time(std::uint32_t event, bool wait);
bool live_event_done(std::uint32_t event);
bool live_stream_done(std::uint16_t stream);

// Waits for news of other processes (clock/domain.h), at most so long in real time. Meanwhile this
// process's device does what it has to do when the job's time comes to it.
void live_await_news(std::uint32_t seen, std::int64_t real_ns);

// For the helper thread: a partner waits for this process, which may be blocked in something else.
void live_help_partners();

}  // namespace maya::session
