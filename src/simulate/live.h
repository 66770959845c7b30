// Simulates the device of one process while its program runs: the simulator's event loop, fed call
// by call.
//
// The simulator knows the whole recording. Here each call is compiled when the program makes it
// (record_compiler.h), together with the time at which it was made, and the event loop advances
// only as far as needed. Host threads are real threads: they report when they call, and get the
// time at which their wait ends. Other ranks are other processes; arrival times are exchanged over
// a Board.
//
// Not thread-safe: the caller must serialize all calls.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "maya/network.h"
#include "simulate/engine.h"
#include "simulate/record_compiler.h"

namespace maya::simulate {

// Exchanges times between the processes of a job: the time of the n-th arrival under a key. Only
// the last few arrivals under a key need to be kept.
class Board {
 public:
  virtual ~Board() = default;
  virtual void post(std::uint64_t key, std::uint32_t number, std::int64_t time) = 0;
  virtual std::int64_t read(std::uint64_t key, std::uint32_t number) const = 0;  // -1: not yet
  // Counts the arrivals of all processes.
  virtual void count_arrival() = 0;
  virtual std::uint32_t arrivals() const = 0;
};

class Live final : RecordCompiler, Partners {
 public:
  // `rank` is the rank of this process in the job.
  Live(const catalog::Cluster& cluster, const estimate::Estimator& estimator,
       const network::Network& network, Board& board, std::int32_t rank);

  // Definitions are numbered in the order of these calls, as in a recording.
  void define(const Op& op);
  void define(const trace::Graph& graph);
  // `present` lists the members that run; empty: all. The others are assumed to be always on time.
  void define(const trace::Communicator& communicator, const std::vector<int>& present);
  std::size_t ops() const { return program_.times.size(); }
  std::size_t graphs() const { return graphs_kept_.size(); }
  std::size_t communicators() const { return slots_.size(); }
  const WorkTime& time_of(std::uint32_t op) const { return program_.times[op]; }

  // Registers a call of the program and returns its index. It has to be issued before the same
  // thread makes another call.
  std::uint32_t call(const trace::Record& record, const trace::Record* wide = nullptr);
  std::int64_t cost(std::uint32_t call) const { return program_.instructions[call].call_ns; }
  // The number that spans of its work carry. It is never reused.
  std::uint32_t number(std::uint32_t call) const { return program_.instructions[call].record; }
  bool queue_full(std::uint32_t call) const;
  void issue(std::uint32_t call, std::int64_t time) { engine_.issue(call, time); }
  // The time at which the wait of the call ends; -1 while that is not known.
  std::int64_t wait_over(std::uint32_t call) const;
  void over(std::uint32_t call);  // the caller will not ask for this call again

  // Advances the device to `time`, or to the point where it depends on a partner that is behind.
  // `patient` as for step().
  void advance(std::int64_t time, bool patient = true);
  // Processes the next event, unless a partner has to advance first. `patient` is false if it is
  // known that no process of the job does anything before the next event.
  enum class Progress : std::uint8_t { made, behind_partners, nothing_to_do };
  Progress step(bool patient = true);
  std::int64_t now() const { return engine_.now(); }
  std::int64_t next_time() { return engine_.next_time(); }
  std::vector<std::int32_t> missing_ranks() const;  // the ranks that communication waits for

  // When the event's latest record was reached; -1: not yet, -2: the event was never recorded.
  std::int64_t event_time(std::uint32_t event) const;
  // Whether everything issued to the stream is complete at `time`.
  bool stream_done(std::uint16_t stream, std::int64_t time);

  // Returns everything that ran since the last call. Spans are kept only after keep_spans(true).
  void keep_spans(bool keep);
  std::vector<Span> take_spans();

 private:
  struct Slot {  // one communicator of this process
    std::uint64_t id{};
    std::int32_t rank{};
    std::vector<std::int32_t> placement;
    std::vector<std::uint8_t> present;
    std::uint32_t calls{};
    std::unordered_map<std::int32_t, std::uint32_t> sends, receives;
    std::unordered_map<std::uint64_t, std::uint32_t> times;  // by hash of the ops
  };
  struct Meeting {
    std::uint16_t slot{};
    std::uint8_t phase{};  // collective: 0 begin, 1 end; message: 2 sender, 3 receiver
    std::int32_t peer{};   // of a message
    std::uint32_t number{};
  };

  std::uint32_t communication(std::uint32_t record, std::uint16_t slot,
                              std::span<const std::uint32_t> ops) override;
  std::uint32_t time_of(Slot& slot, std::span<const std::uint32_t> ops);
  void arrive(std::uint32_t first, std::uint32_t last, std::int64_t now) override;
  std::int64_t met(std::uint32_t first, std::uint32_t last) override;
  template <class Visit>
  void each_party(const Meeting& meeting, Visit&& visit) const;
  bool partners_came();
  void publish();
  void post_waiting(std::int64_t next);
  bool comes_first(std::int64_t next) const;
  void start_anew();

  const estimate::Estimator& estimator_;
  const network::Network& network_;
  Board& board_;
  std::int32_t rank_;
  Plan plan_;
  Others others_;
  Timeline spans_;
  std::vector<Work> works_;  // of communications, by op; empty for others
  std::deque<trace::Graph> graphs_kept_;
  std::vector<Slot> slots_;
  std::vector<Meeting> meetings_;
  std::unordered_map<std::uint32_t, std::int64_t> event_times_;  // of calls that were discarded
  std::uint32_t open_calls_{}, next_number_{1};
  std::int64_t published_{-1}, posted_waiting_{-2};
  std::uint32_t posted_at_{}, looked_at_{};  // counts of arrivals
  std::int64_t horizon_{never};              // of the partners that are missing
  std::vector<std::int32_t> missing_;
  std::vector<std::int32_t> partners_;  // all ranks that share a communicator with this one
  Engine engine_;
};

}  // namespace maya::simulate
