// Timers of this process in virtual time: what timerfd_create, setitimer, alarm and timer_create
// make.
//
// The helper thread (timed_wait.h) waits for the earliest of them like a thread that sleeps, and
// does what is due when the job's time has come to it. A descriptor of timerfd_create is an eventfd
// here: it is read, polled and inherited in the same way, and whoever waits for it without a
// timeout sleeps in the kernel until the helper writes to it.
#pragma once

#include <signal.h>

#include <cstdint>

namespace maya::session {

struct TimerSetting {
  std::int64_t next{};   // the job's time; 0: not armed
  std::int64_t every{};  // 0: once
};

// Whether the process has its timers in virtual time: it needs a helper thread.
bool virtual_timers();

// The timer of setitimer(ITIMER_REAL) and alarm. It outlives exec. What it was before.
TimerSetting set_alarm(const TimerSetting& setting);
TimerSetting alarm_setting();
void resume_alarm();  // a program that replaced another

// Descriptors. `flags` as timerfd_create has them. -1: errno says why.
int make_timer_descriptor(int clock, int flags);
// False: the descriptor is no timer of ours.
bool set_timer_descriptor(int descriptor, const TimerSetting& setting);
bool timer_descriptor(int descriptor, TimerSetting& setting, int& clock);
bool may_be_timer_descriptor(int descriptor);  // a hint: duplicates are not known
void timer_descriptor_closes(int descriptor);  // is about to be closed

// POSIX timers, by a number of ours. 0: there are too many.
std::uint32_t make_timer(int clock, const sigevent* event);
bool set_timer(std::uint32_t number, const TimerSetting& setting);
bool timer_setting(std::uint32_t number, TimerSetting& setting, int& clock);
int timer_overrun(std::uint32_t number);  // -1: there is none
bool remove_timer(std::uint32_t number);

// For the helper thread: the earliest time at which a timer is due (INT64_MAX: none), and doing
// what is due at `now`.
std::int64_t earliest_timer();
void fire_timers(std::int64_t now);
void forget_timers();  // in a forked child, which inherits none

}  // namespace maya::session
