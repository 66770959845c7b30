// The device's timeline while the program runs, for a profiler (CUPTI).
#pragma once

#include <cstdint>
#include <vector>

#include "maya/simulate.h"
#include "maya/trace.h"
#include "session/session.h"

namespace maya::session {

// The observer is told each call, with the number that spans of its work carry. Null: it is done.
// Where time is real, the device's timeline is that of this machine's clock while it watches: waits
// then take the time the device would.
using LiveObserver = void(const trace::Record& record, std::uint32_t number, std::int64_t start,
                          std::int64_t end);
MAYA_EXPORT void observe_live_device(LiveObserver* observer);
// The job's time now, in nanoseconds.
MAYA_EXPORT std::int64_t live_now();
// What ran since this was last asked; `finish`: up to the end of all that was issued.
MAYA_EXPORT std::vector<simulate::Span> live_take_spans(bool finish);
// An op by its number in a span.
MAYA_EXPORT Op observed_op(std::uint32_t number);
// Device of each stream that exists, by the stream's number in records and spans.
MAYA_EXPORT std::vector<std::pair<std::uint16_t, int>> stream_devices();

// Several functions make the same record. What the caller of one that is not the usual one used, by
// CUPTI's number: the outermost one counts.
class MAYA_EXPORT CalledAs {
 public:
  enum class Api : std::uint8_t { runtime, driver };
  CalledAs(Api api, std::uint32_t function);
  ~CalledAs();
  CalledAs(const CalledAs&) = delete;
  CalledAs& operator=(const CalledAs&) = delete;
  // Of the calling thread, now; 0: the usual function.
  static std::uint32_t function(Api& api);

 private:
  bool outermost_;
};

// PyTorch's profiler stamps CPU ops with the processor's counter. From this call on, its libraries
// read the job's time instead. Does nothing the second time, and where time is real. Looking for
// the places takes a few tenths of a second, so it is done when a profiler begins.
MAYA_EXPORT void counter_follows_time();
MAYA_EXPORT bool counter_is_virtual();  // all of them do

// Where they do not: the profiler reads the clock a thousand
// times in a row when it begins and when it ends, and takes the counter to go evenly in between.
// The two latest such readings tell what it will make of a stamp.
struct Calibration {
  std::int64_t time{};    // of the job
  std::uint64_t ticks{};  // of the counter
};
MAYA_EXPORT bool profiler_calibrations(Calibration& begin, Calibration& end);

}  // namespace maya::session
