// Simulates a job on a cluster: computes when each host thread, stream and collective of each rank
// class runs. The result is deterministic: times are integer nanoseconds, and ties are resolved in
// the order of rank, thread and stream. docs/simulation.md explains the model.
//
//   auto timeline = simulate::simulate(job, cluster, *estimator, *network);
//   if (!timeline) return timeline.error();
//   double step_ms = timeline->step_ns / 1e6;
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

// One op that ran on a GPU.
struct Span {
  std::uint32_t rank_class{};
  std::uint16_t stream{};
  std::uint16_t communicator{};  // of collectives: the slot in the class's recording
  std::uint32_t op{};            // index into the class's op table; 0xffffffff: a host function
  std::uint32_t record{};        // index of the record that issued it (launch, graph_launch …)
  std::int64_t issue_ns{};       // when the host call that issued it returned
  std::int64_t start_ns{}, end_ns{};
  std::int64_t collective{-1};  // the same number for all members of one collective
};

// One interval of a host thread.
struct HostSpan {
  std::uint32_t rank_class{};
  std::uint16_t thread{};
  std::uint32_t record{};
  std::int64_t start_ns{}, end_ns{};
  bool waiting{};  // blocked by the device, a full launch queue or a lock
};

// A link of the critical path of a measured step. The links cover the step from start to end
// without gaps. `wait` means that nothing ran on the path, for example before a kernel starts.
struct CriticalLink {
  enum class What : std::uint8_t { kernel, communication, copy, host, wait } what{};
  std::uint32_t rank_class{};
  std::uint32_t record{}, op{};  // op: 0xffffffff if there is none (host, some waits)
  std::int64_t start_ns{}, end_ns{};
};

// A step ends when all work issued in it is complete and the host has reached its end.
struct Step {
  std::int64_t start_ns{}, end_ns{};
  bool measured{true};  // false: warm-up, or a step that differs (it contains an evaluation)
};

// Sums over the measured steps of one class, divided by their count.
// compute + exposed_communication + copy + idle = the class's step time.
struct Breakdown {
  double compute_ns{};                // at least one kernel ran
  double communication_ns{};          // at least one collective or message ran or waited for peers
  double exposed_communication_ns{};  // … and no kernel ran
  double copy_ns{};                   // only copies between host and device ran
  double idle_ns{};                   // nothing ran: late host, waits, gaps between kernels
  double host_bound_ns{};             // part of idle: the host had not issued the next op yet
  // Parts of exposed communication in which no data was transferred: waiting for the peer of a
  // message (pipeline stages), and waiting for the other members of a collective (slower ranks).
  double message_wait_ns{}, collective_wait_ns{};
};

// Time of one family of work on the critical path of a step, with its 80 % interval. The error of a
// family has the same sign everywhere, also in other configurations of the same job.
struct FamilyTime {
  std::string family;  // an op kind, "communication …", "host", "waiting"
  double ns{}, low_ns{}, high_ns{};
};

struct Timeline {
  std::vector<Step> steps;         // all detected steps of the job; each ends with its last rank
  std::uint32_t measured_steps{};  // number of steps whose mean is step_ns
  double step_ns{}, step_low_ns{}, step_high_ns{};  // 80 % interval
  std::vector<Breakdown> breakdown;                 // per class
  std::vector<Span> spans;  // filled when Options::keep_spans; by start, class, stream
  std::vector<HostSpan> host_spans;
  std::vector<CriticalLink> critical_path;  // of one measured step
  std::vector<FamilyTime> families;         // of the critical path; their sum is the step
  double common_error{};  // error that all families have in common, as a share of the step
  std::int64_t end_ns{};
  std::uint64_t simulated_ops{};   // kernels, copies, collectives, messages, host functions
  std::vector<std::string> notes;  // shown to the user
};

struct Options {
  bool keep_spans{false};
  // If a job has more spans than this, only the measured steps of some classes are kept. 0: no
  // limit.
  std::uint64_t most_spans{0};
  bool critical_path{true};  // false: no critical path, and a less accurate interval
  // Fraction by which communication slows down concurrent computation. Negative: computed from the
  // SMs and the memory bandwidth that the communication uses.
  double compute_slowdown_under_communication{-1};
};

// Parameters of the model in catalog::Cluster::extra: key, default, meaning. catalog/network/
// nccl.toml sets those of overlap and names their sources; the defaults apply to clusters that are
// made by hand.
//
//   overlap.compute_bandwidth        0.65  Communication takes memory bandwidth. A kernel that is
//                                          not limited by memory loses this fraction of that share.
//   overlap.communication_slowdown   0.02  Slowdown of communication while kernels run.
//   overlap.max_communication_share  0.5   Largest share of the SMs that communication takes.
//   overlap.memory_bound_share       0.6   Share of the SMs that a memory-bound kernel needs.
//   overlap.share_links              1     1: concurrent communications share the GPU's ports.
//   host.recorded_speed              1     Speed of the recording machine relative to the
//                                          reference host.
//   host.uncertainty                 0.1   Relative error of recorded host times on another host.
//   host.callback_us                 10    Duration of a host function that a stream runs.
Result<Timeline> simulate(const job::Job& job, const catalog::Cluster& cluster,
                          const estimate::Estimator& estimator, const network::Network& network,
                          const Options& options = {});

}  // namespace maya::simulate
