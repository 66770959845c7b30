// The end that `maya run --stop-after` asks for, once enough steps are recorded.
//
// RUN/stop is one word that every process with a device maps. 0: go on. 1: close the recording and
// wait. 2: leave. The launcher (launch/stop_after.h) raises it to 1 and, when all recordings are
// closed, to 2, so that no process sees its peers vanish while it still works.
//
// A process closes its recording at its next launch or collective. One that makes none (it waits
// for data, a lock, a peer) is ended by a thread that watches the word. Neither runs exit handlers,
// `finally` blocks or signal handlers of the program: it cannot write a checkpoint on the way out,
// nor refuse to go. The exit code is 0, which every launcher takes for success.
#pragma once

#include <atomic>
#include <cstdint>

namespace maya::session {

// Of this process; a word that stays 0 where nobody may ask.
extern std::atomic<std::uint32_t>* stop_word;

inline bool stop_asked() { return stop_word->load(std::memory_order_relaxed) != 0; }

// Never returns.
[[noreturn]] void stop_here();

// Called when the program first uses the device: looks for the file, starts the thread. Leaves at
// once where the job has been stopped already: a script may start one program after the other.
void await_stop();

}  // namespace maya::session
