// How often each op of a class runs in a measured step, and its predicted duration.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/report.h"

namespace maya::report {

struct OpUse {
  std::uint32_t rank_class{}, op{};
  std::uint32_t communicator{};  // for communication: the slot in the class's recording
  std::uint64_t count{};         // in all measured steps of the representative
  double ns{};                   // duration of one execution
  estimate::Origin origin{estimate::Origin::unknown};
};

// The records of one measured step of a class: [begin, end).
struct Range {
  std::uint32_t begin{}, end{};
};
// The measured steps; the whole recording if no steps were detected.
std::vector<Range> measured_steps(const job::Job& job, const job::RankClass& rank_class);
// The number of measured steps, at least one.
double measured_count(const job::Job& job);

// Calls `visit(record, record_index)` for all work that the records of [begin, end) put on the
// device. For a graph launch it visits the nodes of the graph. Wide operands are skipped.
template <class Visit>
void each_work(const trace::Recording& recording, std::uint32_t begin, std::uint32_t end,
               Visit&& visit) {
  auto is_work = [](trace::Kind kind) {
    return kind >= trace::Kind::launch && kind <= trace::Kind::point_to_point;
  };
  for (std::uint32_t i = begin; i < end; ++i) {
    const trace::Record& record = recording.records[i];
    if (record.kind == trace::Kind::wide) continue;
    if (is_work(record.kind)) {
      visit(record, i);
    } else if (record.kind == trace::Kind::graph_launch && record.value < recording.graphs.size()) {
      for (const trace::GraphNode& node : recording.graphs[record.value].nodes)
        if (is_work(node.record.kind)) visit(node.record, i);
    }
  }
}

// Every (op, communicator) that is used in the measured steps.
std::vector<OpUse> uses(const job::Job& job, const Models& models);

// The members of a communicator of a class, as ranks of the job; empty if they are not known.
std::vector<std::int32_t> members(const job::Job& job, const trace::Recording& recording,
                                  std::uint32_t communicator);

bool is_communication(const Work& work);
// Whether the FLOPs of this work count for MFU: matrix products, convolutions, attention.
bool is_matrix_work(const Work& work);

}  // namespace maya::report
