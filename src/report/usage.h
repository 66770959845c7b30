// How often each op of a class runs in a measured step, and how long the models say it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/report.h"

namespace maya::report {

struct OpUse {
  std::uint32_t rank_class{}, op{};
  std::uint32_t communicator{};  // of the class's recording; meaningful for communication
  std::uint64_t count{};         // in all measured steps of the representative
  double ns{};                   // of one run of it
  estimate::Origin origin{estimate::Origin::unknown};
};

// The records of one measured step of a class: [begin, end).
struct Range {
  std::uint32_t begin{}, end{};
};
// The steps that count for the answer; the whole recording when collate found none.
std::vector<Range> measured_steps(const job::Job& job, const job::RankClass& rank_class);
// How many, at least one.
double measured_count(const job::Job& job);

// Calls `visit(record, record_index)` for every piece of work the records of [begin, end) put on
// the device, with the nodes of a graph for its launch. A wide record's operands are skipped.
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

// Every (op, communicator) used in the measured steps.
std::vector<OpUse> uses(const job::Job& job, const Models& models);

// Members of a class's communicator as ranks of the job; empty if collate did not know it.
std::vector<std::int32_t> members(const job::Job& job, const trace::Recording& recording,
                                  std::uint32_t communicator);

bool is_communication(const Work& work);
// Work whose FLOPs count for MFU: what runs on the matrix units.
bool is_matrix_work(const Work& work);

}  // namespace maya::report
