// A job's recordings and durations become a timeline: when each host thread, stream and collective
// of each rank class did what. Deterministic: integer nanoseconds, ties broken by rank, thread,
// stream.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "maya/estimate.h"
#include "maya/job.h"
#include "maya/network.h"
#include "maya/result.h"

namespace maya::simulate {

// One thing that ran on a GPU.
struct Span {
  std::uint32_t rank_class{};
  std::uint16_t stream{};
  std::uint16_t communicator{};  // of the class's recording, for collectives
  std::uint32_t op{};            // index into the class's op table; 0xffffffff: a host function
  std::uint32_t record{};        // index of the record that issued it (launch, graph_launch …)
  std::int64_t issue_ns{};       // the host call that issued it ended
  std::int64_t start_ns{}, end_ns{};
  std::int64_t collective{-1};  // spans of one collective over classes carry the same number
};

// One stretch of a host thread.
struct HostSpan {
  std::uint32_t rank_class{};
  std::uint16_t thread{};
  std::uint32_t record{};
  std::int64_t start_ns{}, end_ns{};
  bool waiting{};  // blocked on the device, a full queue or a lock
};

// A link of the critical path of a measured step. Links follow each other without a gap from the
// step's start to its end. `wait`: nothing ran on the path, e.g. the gap before a kernel starts.
struct CriticalLink {
  enum class What : std::uint8_t { kernel, communication, copy, host, wait } what{};
  std::uint32_t rank_class{};
  std::uint32_t record{}, op{};  // op: 0xffffffff where there is none (host, some waits)
  std::int64_t start_ns{}, end_ns{};
};

// A step ends when all work issued in it is done and the host has come to its end.
struct Step {
  std::int64_t start_ns{}, end_ns{};
  bool measured{true};  // false: warm-up, or a step unlike the others (evaluation in it)
};

// Sums over the measured steps of one class, divided by their count.
// compute + exposed_communication + copy + idle = the class's step time.
struct Breakdown {
  double compute_ns{};                // at least one kernel was running
  double communication_ns{};          // at least one collective or message was, waiting included
  double exposed_communication_ns{};  // … and no kernel
  double copy_ns{};                   // a copy between host and device was, and nothing else
  double idle_ns{};                   // nothing was running: host late, waits, gaps between kernels
  double host_bound_ns{};             // part of idle: the host had not issued yet
  // Parts of exposed communication in which no data moved: it waited for the partner of a message
  // (stages of a pipeline), or for the other members of a collective (slower ranks).
  double message_wait_ns{}, collective_wait_ns{};
};

// What one family of work adds to the critical path of a step, with its 80 % interval. Errors of
// one family go the same way, here and in other configurations of the same job.
struct FamilyTime {
  std::string family;  // an op kind, "communication …", "host", "waiting"
  double ns{}, low_ns{}, high_ns{};
};

struct Timeline {
  std::vector<Step> steps;         // all found steps of the whole job: max over ranks
  std::uint32_t measured_steps{};  // those that count: the answer is their mean
  double step_ns{}, step_low_ns{}, step_high_ns{};  // 80 % interval
  std::vector<Breakdown> breakdown;                 // per class
  std::vector<Span> spans;  // filled when Options::keep_spans; by start, class, stream
  std::vector<HostSpan> host_spans;
  std::vector<CriticalLink> critical_path;  // of one measured step
  std::vector<FamilyTime> families;         // of the critical path; they sum to the step
  double common_error{};  // share of the step by which all families may be off together
  std::int64_t end_ns{};
  std::uint64_t simulated_ops{};   // kernels, copies, collectives, messages, host functions
  std::vector<std::string> notes;  // what a user should know of how this came about
};

struct Options {
  bool keep_spans{false};
  // Of a job with more: only the measured steps of some classes. 0: whatever there is.
  std::uint64_t most_spans{0};
  bool critical_path{true};  // without it the interval is a rougher one
  // Fraction by which running communication lengthens computation beside it; < 0: from the SMs and
  // the memory bandwidth that the communication takes.
  double compute_slowdown_under_communication{-1};
};

// Numbers of the model that Cluster::extra may give (key, default, meaning). Those of overlap come
// from catalog/network/nccl.toml, where their sources are; the defaults are for clusters made by
// hand.
//   overlap.compute_bandwidth       0.65  of the memory bandwidth that communication takes: what
//   part
//                                         kernels not limited by memory feel
//   overlap.communication_slowdown  0.02  slow-down of communication while kernels run
//   overlap.max_communication_share 0.5   SMs that communication can take at most
//   overlap.memory_bound_share      0.6   SMs a kernel limited by memory bandwidth makes use of
//   overlap.share_links             1     communications at a time divide the GPU's ports
//   host.recorded_speed             1     speed of the recording machine against the reference host
//   host.uncertainty                0.1   how far off recorded host times may be on another host
//   host.callback_us                10    a host function run by a stream
Result<Timeline> simulate(const job::Job& job, const catalog::Cluster& cluster,
                          const estimate::Estimator& estimator, const network::Network& network,
                          const Options& options = {});

}  // namespace maya::simulate
