// A job's recordings and durations become a timeline: when each host thread, stream and collective of
// each rank class did what. Deterministic: integer nanoseconds, ties broken by rank, thread, stream.
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
  std::uint16_t communicator{};   // of the class's recording, for collectives
  std::uint32_t op{};             // index into the class's op table
  std::uint32_t record{};         // index of the record that issued it (launch, graph_launch …)
  std::int64_t issue_ns{};        // the host call that issued it ended
  std::int64_t start_ns{}, end_ns{};
  std::int64_t collective{-1};    // spans of one collective over classes carry the same number
};

// One stretch of a host thread.
struct HostSpan {
  std::uint32_t rank_class{};
  std::uint16_t thread{};
  std::uint32_t record{};
  std::int64_t start_ns{}, end_ns{};
  bool waiting{};                 // blocked on the device, a full queue or a lock
};

// A link of the critical path of the measured steps, in time order.
struct CriticalLink {
  enum class What : std::uint8_t { kernel, communication, copy, host, wait } what{};
  std::uint32_t rank_class{};
  std::uint32_t record{}, op{};
  std::int64_t start_ns{}, end_ns{};
};

struct Step {
  std::int64_t start_ns{}, end_ns{};
};

// Sums over the measured steps of one class, divided by their count.
struct Breakdown {
  double compute_ns{}, communication_ns{}, exposed_communication_ns{}, copy_ns{}, idle_ns{};
  double host_bound_ns{};         // the GPU idle because the host had not issued yet (part of idle)
};

struct Timeline {
  std::vector<Step> steps;              // of the whole job: max over ranks
  double step_ns{}, step_low_ns{}, step_high_ns{};
  std::vector<Breakdown> breakdown;     // per class
  std::vector<Span> spans;              // filled when Options::keep_spans
  std::vector<HostSpan> host_spans;
  std::vector<CriticalLink> critical_path;   // of one measured step
  std::int64_t end_ns{};
  std::uint64_t simulated_ops{};
};

struct Options {
  bool keep_spans{false};
  bool critical_path{true};
  double compute_slowdown_under_communication{-1};   // < 0: from the cluster
};

// `durations`: per class, per op: the estimator's answer (collate::Job says which ops there are).
Result<Timeline> simulate(const job::Job& job, const catalog::Cluster& cluster,
                          const estimate::Estimator& estimator, const network::Network& network,
                          const Options& options = {});

}  // namespace maya::simulate
