// The event loop of one rank class: its host threads and its GPUs (one, or several driven by one
// process).
//
// Hosts run ahead of the device: a call's time depends on the device only where it blocks (a sync,
// a full queue), so each thread runs until it blocks, and only then does the device take its next
// event. Whatever a thread issues afterwards is issued at or after that event.
//
// Time is a key: twice the nanosecond, plus one for the settling that follows all events of that
// nanosecond (copy engines granted, rates of running work set). Results so do not depend on the
// order of simultaneous events, within a class or between classes.
//
// Classes meet in collectives and messages only. A class none of whose lanes waits for another may
// run ahead of the others; one with a lane that waits may not pass the earliest event of any other
// (the horizon), because that one may end the wait. This is conservative parallel simulation:
// exact.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "simulate/accounting.h"
#include "simulate/cause.h"
#include "simulate/link_shares.h"
#include "simulate/meeting_table.h"
#include "simulate/program.h"

namespace maya::simulate {

inline constexpr std::int64_t never = INT64_MAX;

// Kept for the step whose critical path is wanted.
struct ItemLog {
  std::int64_t start{-1}, end{-1};
  Cause cause;
};
struct HostLog {
  std::int64_t start{-1}, issue{-1}, end{-1};
  Cause start_cause;  // resumed by another thread; else the thread's previous call
  Cause queue_cause;  // the work that made place in a full queue
  std::int64_t queue_time{};
  Cause end_cause;  // the work a blocking call waited for
};

// The partners of a live job (live.h), which are other processes.
class Partners {
 public:
  virtual ~Partners() = default;
  // This process has come to the meetings [first, last) of its communications.
  virtual void arrive(std::uint32_t first, std::uint32_t last, std::int64_t now) = 0;
  // When the last party came to all of them; -1: somebody is missing.
  virtual std::int64_t met(std::uint32_t first, std::uint32_t last) = 0;
};

class Engine;
// How a class reaches the others.
struct Others {
  MeetingTable* meetings{};
  std::vector<Engine*> engines;
  std::uint32_t running{};
  std::int64_t horizon{never};  // of the class that runs
  std::vector<std::uint32_t> woken;
  Partners* partners{};  // instead of the meetings and engines of one simulation
};

class Engine {
 public:
  // `program` may grow while the engine is in use: see grow().
  Engine(const Plan& plan, const Program& program, std::uint32_t rank_class, Others& others,
         Timeline* spans);

  // Runs until nothing is left or the horizon holds it back. Returns the key of its next event.
  std::int64_t run();
  std::int64_t key() const { return key_; }
  bool finished() const;
  std::string stuck() const;  // what it waits for, for an error message

  // For the live model, whose program grows and whose hosts are real.
  void grow();  // the program has more lanes, items, tickets or calls
  void issue(std::uint32_t instruction, std::int64_t time);
  std::int64_t next_time();  // of the next event; never: nothing is under way
  void step();               // takes the next event
  bool await_partners();     // true: some communication may begin or end that could not
  bool waits_for_partners() const { return pending_ > 0; }
  std::int64_t done(std::uint32_t ticket) const { return tickets_[ticket].done; }
  std::uint32_t closed(std::uint32_t lane) const { return lanes_[lane].closed; }
  bool idle() const;  // all that was issued is done
  void keep_spans(Timeline* spans) { spans_ = spans; }
  void forget();  // of an idle engine: the program begins anew

  std::int64_t now() const { return now_; }
  std::int64_t end() const;
  Accounting& accounting() { return accounting_; }
  const std::vector<ItemLog>& item_log() const { return item_log_; }
  const std::vector<HostLog>& host_log() const { return host_log_; }  // from Program::log_begin on
  // Position of an item index (as in Cause) in the log; none if it is not of the logged step.
  std::uint32_t log_place(std::uint32_t item) const;
  struct ItemPlace {
    std::uint32_t lane{}, index{};
  };
  ItemPlace place(std::uint32_t item) const;

 private:
  enum class State : std::uint8_t {
    idle,
    waiting_ticket,
    starting,
    queued,
    running,
    meeting,
    finishing,
    done
  };
  enum class Class : std::uint8_t { compute, copy, communication, host };

  struct Lane {
    const Item* items{};
    std::uint32_t head{}, size{}, base{};
    State state{State::idle};
    Class what{};
    Resource resource{};
    std::uint16_t device{};
    bool queue_waiters{}, memory_bound{};
    std::int32_t priority{};
    std::int64_t next{never};
    std::uint32_t timer{none};  // place in timed_
    std::int64_t ready{};
    std::int64_t dependency{};  // `ready` but for the host's call
    Cause cause;                // of `ready`, later of the start
    std::int64_t started{}, updated{};
    std::int64_t remaining{};  // work: ns · 2^16
    std::uint32_t rate{}, share{}, blocks{};
    std::uint32_t missing{};          // meets
    std::uint32_t waiter_next{none};  // in a ticket's list
    std::uint32_t closed{};           // places of the launch queue freed
    std::uint32_t log_begin{}, log_count{}, log_offset{};
  };
  // What runs on one GPU.
  struct Gpu {
    std::vector<std::uint32_t> active;    // lanes whose work makes progress
    std::vector<std::uint32_t> resident;  // communication that waits for partners
    std::array<std::vector<std::uint32_t>, resource_count> engine_queue;
    std::array<std::uint32_t, resource_count> engine_user{};
    std::array<Cause, resource_count> engine_freed;
    std::array<std::uint32_t, 4> active_by_class{};
    bool dirty{};
  };
  struct Ticket {
    std::int64_t done{-1};
    std::uint32_t waiter{none};
    Cause cause;
  };
  enum class Phase : std::uint8_t { start, queue, wait, resume, finished };
  struct HostThread {
    std::uint32_t at{none};
    std::uint32_t wait_index{};
    std::uint32_t waiter_next{none};
    Phase phase{Phase::start};
    bool runnable{};
    std::int64_t time{}, start{};
    Cause start_cause, queue_cause, end_cause;
    std::int64_t queue_time{};
  };

  static constexpr std::uint32_t thread_bit = 0x80000000u;

  void run_hosts();
  bool run_thread(std::uint32_t thread);
  bool find_next(std::uint32_t& lane);
  void take(std::uint32_t lane);
  void make_runnable(std::uint32_t thread);

  void advance(std::uint32_t lane);
  void drain();
  void complete_ticket(std::uint32_t ticket, std::int64_t time, Cause cause);
  void start(std::uint32_t lane);
  void begin(std::uint32_t lane);
  void end_of_step(std::uint32_t instruction, std::int64_t time);
  void remove(std::vector<std::uint32_t>& set, std::uint32_t lane);
  void arrive(std::uint32_t lane);
  void meet_partners(std::uint32_t lane, std::uint32_t first, std::uint32_t last);
  void local_end(std::uint32_t lane);
  void complete(std::uint32_t lane);
  void settle();
  unsigned waiting_for(const Gpu& gpu) const;
  void grant_engines(Gpu& gpu);
  void set_rates(Gpu& gpu);
  Gpu& gpu_of(const Lane& lane) { return gpus_[lane.device]; }
  void touch(Gpu& gpu) { gpu.dirty = dirty_ = true; }
  void wake(std::uint32_t lane, std::int64_t time, Cause cause);
  void set_timer(std::uint32_t lane, std::int64_t time);
  void clear_timer(std::uint32_t lane);
  void keep(const Lane& lane);
  const Communication& communication(const Lane& lane) const {
    return program_.communications[lane.items[lane.head].index];
  }

  const Plan& plan_;
  const Model& model_;
  const Program& program_;
  std::uint32_t class_;
  Others& others_;
  Timeline* spans_;
  Accounting accounting_;
  std::vector<Lane> lanes_;
  std::vector<Ticket> tickets_;
  std::vector<HostThread> threads_;
  std::vector<std::int64_t> issued_;  // per instruction: when its call was over; -1 not yet
  std::vector<std::uint32_t> timed_;  // lanes with a finite `next`
  std::vector<std::uint32_t> work_;   // lanes to advance
  std::vector<std::uint32_t> runnable_;
  std::vector<Gpu> gpus_;
  std::size_t fresh_gpus_{};  // those before are set up
  LinkShares link_shares_;
  std::vector<std::uint32_t> order_, transfers_, together_;  // scratch of set_rates
  std::uint32_t pending_{};                                  // lanes waiting for other parties
  std::vector<std::uint32_t> meeting_;                       // of a live job: those lanes
  std::uint32_t resume_waiters_{};
  bool dirty_{};
  std::int64_t now_{}, key_{};
  std::vector<ItemLog> item_log_;
  std::vector<HostLog> host_log_;
};

}  // namespace maya::simulate
