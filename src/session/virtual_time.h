// Virtual time of this process's threads (`maya run --clock virtual`, docs/virtual-time.md).
//
// A thread's time is the host time it used (host_clock.h), scaled to the target host, what its CUDA
// calls cost there, and what it waited. The threads of a job share a domain (clock/domain.h), whose
// arbiter says when a wait is over. A thread that slept in the kernel goes on at the time the
// others have reached.
#pragma once

#include <cstdint>

#include "clock/domain.h"
#include "session/observation.h"

namespace maya::session {

// Null: time is real.
extern clock::Domain* time_domain;

// Whether the calling thread lives in virtual time: not while it runs our own code, and not if it
// is one of our own threads.
bool in_virtual_time();

// For a process in real time whose device is modelled all the same (a profiler asks): the time of
// its threads is this machine's from now on, and waits take as long as they say.
void follow_real_time();

// The calling thread's time: nanoseconds since the job began.
std::int64_t thread_now();
// Its time goes on by so much, without anybody having to wait for it: the cost of a call.
void thread_spends(std::int64_t ns);
// Host time since this was last asked, and a way to take some of it back: never further than to
// what the program has read from a clock. The thread's time then.
std::int64_t thread_worked();
std::int64_t thread_gives_back(std::int64_t ns);
// What a clock of the program shows.
std::int64_t thread_reads();
// The program read a clock: see Calibration in observation.h.
void notice_calibration(std::int64_t time);
// Waits until the job has come to `time`. False: a signal came first.
bool thread_sleeps_until(std::int64_t time, clock::Waits waits = clock::Waits::on_word);
// After a wait: its deadline came, or another thread ended it.
void thread_woke(bool by_time);
// After a wait without a deadline, of which the clock was told nothing.
void thread_resumes();
// The caller asks again and again for something that is not there: after a few rounds that is
// waiting, and time goes on in small steps. `for_others`: it is not the device that it asks, so
// that another thread has to act first (clock/arbiter.h).
void thread_spins(bool for_others = true);
void thread_did_work();  // … and this was no such round

// The caller has made a process, or is one that is about to become another program: it takes part
// before that program can say so itself. Uses system calls only.
void child_starts(int process);

// A detached thread of the program that begins at `time`.
bool start_thread_at(std::int64_t time, void* (*routine)(void*), void* argument);

// A thread that is started from here on by the caller is ours and lives in real time.
class OutsideTime {
 public:
  OutsideTime();
  ~OutsideTime();
  OutsideTime(const OutsideTime&) = delete;
  OutsideTime& operator=(const OutsideTime&) = delete;

 private:
  bool before_;
};

}  // namespace maya::session
