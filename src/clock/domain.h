// The virtual time of a job: a file of the run directory that every process of the job has mapped.
//
// Participants are threads. Each has a time of its own: processor time it used, scaled to the
// target host, and what it waited. A thread that waits for a time says so in its place of the table
// and sleeps. The arbiter (arbiter.h), which lives in the launcher, ends the wait with the earliest
// deadline when no thread of the job can act before it.
//
// A participant may be killed at any moment: there are no locks here, only single words.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "clock/device_load.h"
#include "clock/host_times.h"
#include "maya/result.h"

namespace maya::clock {

enum class State : std::uint32_t {
  free,
  running,
  waiting,  // until `deadline`
  called,   // its deadline has come, and a helper thread is on the way to wake it
  blocked,  // asleep in the kernel without a deadline, as the arbiter found
  woken,    // was blocked and runs again, as the arbiter found; the thread does not know it yet
};

// How a thread learns that its wait is over.
enum class Waits : std::uint32_t {
  on_word,     // sleeps on its word
  in_kernel,   // in the kernel, for something else too: a helper thread of its process wakes it
  for_lock,    // as in_kernel, and has to get a lock before it can go on: others have to run first
  for_device,  // as on_word, until its device is done
  spinning,    // as on_word, to ask again then: what it asks for, somebody else has to do
};

// One thread.
struct alignas(64) Place {
  std::atomic<State> state;
  std::atomic<std::uint32_t> word;            // a futex: changes when the wait is ended
  std::atomic<std::int32_t> process, thread;  // as the kernel numbers them
  std::atomic<std::int64_t> time;             // when the thread last said
  std::atomic<std::int64_t> deadline;
  std::atomic<std::uint32_t> member;  // its process in the table of processes
  std::atomic<Waits> waits;
};

// One process.
struct alignas(64) Member {
  std::atomic<std::int32_t> process;
  std::atomic<std::uint32_t> word;   // a futex: its helper thread is wanted
  std::atomic<std::int64_t> latest;  // time of whichever of its threads has come furthest
  std::atomic<std::int32_t> rank;    // of the job, -1: none
  // The device it uses, -1: none, and how much of that one's memory.
  std::atomic<std::int32_t> device;
  std::atomic<std::uint64_t> used_bytes;
  // Its alarm (setitimer), which outlives exec: the next time, 0: none, and the period.
  std::atomic<std::int64_t> alarm_at, alarm_every;
};

class Domain {
 public:
  static constexpr std::uint32_t most_threads = 1 << 16, most_processes = 1 << 14,
                                 most_boards = 1 << 14, board_entries = 32, most_devices = 1 << 12;

  // A new file. `scale`: time of the target host over processor time used here.
  static Status create(const std::string& path, double scale);
  // Null: there is none, and time is real.
  static Domain* attach(const std::string& path);

  double scale() const { return scale_; }
  double ns_per_tick() const;                // of the time-stamp counter; 0: not known
  std::int64_t real_start(int clock) const;  // of a clock of the machine when time began
  // The time that every running thread has reached. Never falls.
  std::int64_t now() const;
  void reached(std::int64_t time);

  // A thread takes part from `time` on; 0: one that is about to be made. Null: the table is full.
  Place* join(std::int32_t process, std::int32_t thread, std::int64_t time);
  void leave(Place& place);
  void leave_others(const Place& place);  // of the same process
  // The place of a thread whose program was replaced (exec), or of its parent.
  Place* find(std::int32_t process, std::int32_t thread);
  Member& member(const Place& place) { return members_[place.member.load()]; }

  // Waits until `deadline`. Returns true when it has come; false when the thread was interrupted by
  // a signal or, for waits that end otherwise too, by end_wait.
  bool sleep(Place& place, std::int64_t now, std::int64_t deadline, Waits waits = Waits::on_word);
  void begin_wait(Place& place, std::int64_t now, std::int64_t deadline, Waits waits);
  bool ended(const Place& place) const { return place.state.load() != State::waiting; }
  void end_wait(Place& place);  // the thread goes on by itself
  // Where the arbiter is gone, nobody ends waits: time is real from then on.
  bool arbiter_lives() const;

  // The time at which the n-th arrival under a key happened; see simulate/live.h.
  void post(std::uint64_t key, std::uint32_t number, std::int64_t time);
  std::int64_t read(std::uint64_t key, std::uint32_t number) const;
  // Whoever waits for something that another process leaves in a file or on the board asks for this
  // number, looks, and then waits for the number to change: so the kernel wakes him before the
  // other goes to sleep, and time cannot pass in between.
  std::uint32_t news() const;
  void await_news(std::uint32_t seen, std::int64_t ns);
  void tell();
  void count_arrival();
  std::uint32_t arrivals() const;
  // A thread that did something goes to wait at `time`: those who spin look at what it did.
  void acted(std::int64_t time);

  HostTimes& host_times() { return *host_times_; }
  // By the device's number in the job: nodes one after the other.
  DeviceLoad& load(std::uint32_t device) { return loads_[device % most_devices]; }

  struct Header;
  Header& header() { return *header_; }
  Place& place(std::uint32_t index) { return places_[index]; }
  Member& member(std::uint32_t index) { return members_[index]; }
  Member& member_of_process(std::int32_t process) { return members_[member_of(process)]; }
  std::uint32_t places() const;  // in use are some below this
  std::uint32_t members() const;
  std::uint32_t joins() const;  // how often a thread has joined
  void ring();                  // the arbiter has something to look at

 private:
  struct Entry {
    std::atomic<std::uint32_t> number;  // plus one; 0: none
    std::atomic<std::int64_t> time;
  };
  struct BoardPage {
    std::atomic<std::uint64_t> key;
    Entry entries[board_entries];
  };
  struct Layout;
  BoardPage* page(std::uint64_t key, bool make) const;
  std::uint32_t member_of(std::int32_t process);

  double scale_{1};
  Header* header_{};
  Place* places_{};
  Member* members_{};
  BoardPage* pages_{};
  HostTimes* host_times_{};
  DeviceLoad* loads_{};
};

struct Domain::Header {
  std::uint64_t magic;
  double scale, ns_per_tick;
  std::int64_t real_start[16];  // by clock id
  std::atomic<std::int64_t> now;
  std::atomic<std::uint32_t> places, members, joins;
  std::atomic<std::uint32_t> bell;  // a futex for the arbiter
  std::atomic<std::uint32_t> news;  // a futex: await_news sleeps on it
  std::atomic<std::uint32_t> news_waiters, arrivals;
  std::atomic<std::int64_t> arbiter_beat;  // real, monotonic
  std::atomic<std::uint64_t> waits_ended, waits_forced;
  std::atomic<std::int64_t> device_done;  // the last time that a wait for a device ended
  std::atomic<std::int64_t> acted;        // the last time that somebody went to wait who had worked
};

}  // namespace maya::clock
