// The event loop of one rank class: its host threads and its GPUs (one, or several that one process
// drives).
//
// Hosts run ahead of the device. The time of a call depends on the device only if the call blocks
// (synchronization, a full launch queue). So each thread runs until it blocks, and only then the
// device processes its next event. Everything that a thread issues afterwards is issued at or after
// that event.
//
// Time is represented by a key: twice the nanosecond, plus one for the settling phase after all
// events of that nanosecond. In this phase copy engines are assigned and the rates of running work
// are set. Results therefore do not depend on the order of simultaneous events, within a class or
// between classes.
//
// Classes interact only in collectives and messages. A class may run ahead of the others as long as
// none of its lanes waits for another class. A class with a waiting lane may not pass the earliest
// event of any other class (the horizon), because that event may end the wait. This is conservative
// parallel simulation, and it is exact.
//
// A lane is a stream, or a chain of graph nodes that runs in parallel with the stream its graph was
// launched on. An item is one entry of a lane. A ticket is a point in a lane that others can wait
// for (an event record).
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

// Recorded for the step whose critical path is computed.
struct ItemLog {
  std::int64_t start{-1}, end{-1};
  Cause cause;
};
struct HostLog {
  std::int64_t start{-1}, issue{-1}, end{-1};
  Cause start_cause;  // the thread that resumed it; else the thread's previous call
  Cause queue_cause;  // the work that freed a place in a full queue
  std::int64_t queue_time{};
  Cause end_cause;  // the work that a blocking call waited for
};

// In a live job (live.h) the partners of a communication are other processes.
class Partners {
 public:
  virtual ~Partners() = default;
  // This process has arrived at the meetings [first, last).
  virtual void arrive(std::uint32_t first, std::uint32_t last, std::int64_t now) = 0;
  // When the last party arrived at all of them; -1: a party is missing.
  virtual std::int64_t met(std::uint32_t first, std::uint32_t last) = 0;
};

class Engine;
// How a class interacts with the others.
struct Others {
  MeetingTable* meetings{};
  std::vector<Engine*> engines;
  std::uint32_t running{};
  std::int64_t horizon{never};  // of the class that is running
  std::vector<std::uint32_t> woken;
  Partners* partners{};  // used instead of the meetings and engines in a live job
};

class Engine {
 public:
  // `program` may grow while the engine is used: see grow().
  Engine(const Plan& plan, const Program& program, std::uint32_t rank_class, Others& others,
         Timeline* spans);

  // Runs until it is done or reaches the horizon. Returns the key of its next event.
  std::int64_t run();
  std::int64_t key() const { return key_; }
  bool finished() const;
  std::string stuck() const;  // error message: what it waits for

  // For the live model, whose program grows and whose hosts are real threads.
  void grow();  // to be called when lanes, items, tickets or calls were added
  void issue(std::uint32_t instruction, std::int64_t time);
  std::int64_t next_time();  // time of the next event; never: there is none
  void step();               // processes the next event
  bool await_partners();     // true: a communication can now begin or end
  bool waits_for_partners() const { return pending_ > 0; }
  std::int64_t done(std::uint32_t ticket) const { return tickets_[ticket].done; }
  std::uint32_t closed(std::uint32_t lane) const { return lanes_[lane].closed; }
  bool idle() const;  // everything that was issued is complete
  void keep_spans(Timeline* spans) { spans_ = spans; }
  void forget();  // for an idle engine whose program starts again from the beginning

  std::int64_t now() const { return now_; }
  std::int64_t end() const;
  Accounting& accounting() { return accounting_; }
  const std::vector<ItemLog>& item_log() const { return item_log_; }
  const std::vector<HostLog>& host_log() const { return host_log_; }  // from Program::log_begin on
  // Position of an item (as in Cause) in the log; none if it is not in the logged step.
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
    std::uint32_t timer{none};  // index into timed_
    std::int64_t ready{};
    std::int64_t dependency{};  // when it would be ready without the host's call
    Cause cause;                // of `ready`, later of the start
    std::int64_t started{}, updated{};
    std::int64_t remaining{};  // work: ns · 2^16
    std::uint32_t rate{}, share{}, blocks{};
    std::uint32_t missing{};          // meetings that are not complete
    std::uint32_t waiter_next{none};  // in a ticket's list
    std::uint32_t closed{};           // places of the launch queue that it has freed
    std::uint32_t log_begin{}, log_count{}, log_offset{};
  };
  // The work that is running on one GPU.
  struct Gpu {
    std::vector<std::uint32_t> active;    // lanes whose work progresses
    std::vector<std::uint32_t> resident;  // lanes whose communication waits for partners
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
  std::vector<std::int64_t> issued_;  // per instruction: when its call returned; -1: not yet
  std::vector<std::uint32_t> timed_;  // lanes with a finite `next`
  std::vector<std::uint32_t> work_;   // lanes to advance
  std::vector<std::uint32_t> runnable_;
  std::vector<Gpu> gpus_;
  std::size_t fresh_gpus_{};  // GPUs below this index are initialized
  LinkShares link_shares_;
  std::vector<std::uint32_t> order_, transfers_, together_;  // scratch of set_rates
  std::uint32_t pending_{};                                  // lanes waiting for other parties
  std::vector<std::uint32_t> meeting_;                       // in a live job: these lanes
  std::uint32_t resume_waiters_{};
  bool dirty_{};
  std::int64_t now_{}, key_{};
  std::vector<ItemLog> item_log_;
  std::vector<HostLog> host_log_;
};

}  // namespace maya::simulate
