#include "report/passes.h"

#include <algorithm>

#include "collate/sequence.h"

namespace maya::report {
namespace {

bool ends_forward_pass(const Work& work) {
  const auto* softmax = std::get_if<Softmax>(&work);
  return std::holds_alternative<CrossEntropy>(work) || (softmax != nullptr && softmax->log);
}

// Whether the op says itself that it belongs to a forward pass.
bool is_forward(const Op& op) {
  return std::visit(
      [](const auto& work) {
        if constexpr (requires { work.direction == Direction::forward; })
          return work.direction == Direction::forward;
        else
          return false;
      },
      op.work);
}

}  // namespace

Passes::Passes(const job::Job& job, const job::RankClass& rank_class)
    : recording_(rank_class.recording) {
  // A step begins with its forward pass, so the thread of the first matrix product is the main
  // thread.
  bool found = false;
  for (const Range& step : measured_steps(job, rank_class)) {
    each_work(recording_, step.begin, step.end,
              [&](const trace::Record& record, std::uint32_t index) {
                if (found || record.value >= recording_.ops.size() ||
                    !is_matrix_work(recording_.ops[record.value].work))
                  return;
                program_ = recording_.records[index].thread;
                found = true;
              });
    if (found) break;
  }
  std::set<std::uint16_t> gradients;
  for (const Range& step : measured_steps(job, rank_class))
    each_work(recording_, step.begin, step.end,
              [&](const trace::Record& record, std::uint32_t index) {
                if (record.value >= recording_.ops.size()) return;
                const Op& op = recording_.ops[record.value];
                const std::uint16_t thread = recording_.records[index].thread;
                if (collate::computes_gradients(op))
                  gradients.insert(thread);
                else if (thread != program_ && is_forward(op))
                  replicas_.insert(thread);
              });
  for (const std::uint16_t thread : gradients) replicas_.erase(thread);
}

bool Passes::backward(std::uint32_t index, const Op& op) const {
  const std::uint16_t thread = recording_.records[index].thread;
  return (thread != program_ && !replicas_.contains(thread)) || collate::computes_gradients(op);
}

bool is_pipeline_stage(const job::Job& job, const job::RankClass& rank_class) {
  const trace::Recording& recording = rank_class.recording;
  const Range step = measured_steps(job, rank_class)[0];
  bool sends = false, receives = false, over = false;
  each_work(recording, step.begin, step.end, [&](const trace::Record& record, std::uint32_t) {
    if (over || record.value >= recording.ops.size()) return;
    const Work& work = recording.ops[record.value].work;
    if (const auto* message = std::get_if<PointToPoint>(&work))
      (message->send ? sends : receives) = true;
    else
      over = (sends || receives) && is_matrix_work(work);
  });
  return sends != receives;
}

std::map<std::uint16_t, std::int64_t> forward_reductions(const job::Job& job,
                                                         const job::RankClass& rank_class) {
  std::map<std::uint16_t, std::int64_t> found;
  const trace::Recording& recording = rank_class.recording;
  const Passes passes(job, rank_class);
  for (const Range& step : measured_steps(job, rank_class)) {
    bool forward = false, over = false;
    each_work(recording, step.begin, step.end,
              [&](const trace::Record& record, std::uint32_t index) {
                if (over || record.value >= recording.ops.size()) return;
                const Op& op = recording.ops[record.value];
                over = forward && (ends_forward_pass(op.work) ||
                                   (passes.backward(index, op) && !is_communication(op.work)));
                forward |= is_matrix_work(op.work);
                const auto* call = std::get_if<Collective>(&op.work);
                if (over || !forward || call == nullptr || passes.backward(index, op)) return;
                if (call->kind != CollectiveKind::all_reduce &&
                    call->kind != CollectiveKind::reduce_scatter)
                  return;
                // Activations are added. Averages, also as sums of scaled values, are of gradients,
                // which a loss computed in chunks has before the forward pass seems over.
                if (call->reduce != ReduceOp::sum) return;
                std::int64_t& most = found[record.aux];
                most = std::max(most, call->bytes);
              });
  }
  return found;
}

}  // namespace maya::report
