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

namespace {

// The slots over which a class begins its messages of a step by sending or by receiving, and not by
// both between two products.
std::set<std::uint16_t> one_way_slots(const job::Job& job, const job::RankClass& rank_class) {
  struct Begin {
    bool sends{}, receives{}, over{};
  };
  std::map<std::uint16_t, Begin> begins;
  const trace::Recording& recording = rank_class.recording;
  const Range step = measured_steps(job, rank_class)[0];
  each_work(recording, step.begin, step.end, [&](const trace::Record& record, std::uint32_t) {
    if (record.value >= recording.ops.size()) return;
    const Work& work = recording.ops[record.value].work;
    if (const auto* message = std::get_if<PointToPoint>(&work)) {
      Begin& begin = begins[record.aux];
      if (!begin.over) (message->send ? begin.sends : begin.receives) = true;
    } else if (is_matrix_work(work)) {
      for (auto& [slot, begin] : begins) begin.over = true;
    }
  });
  std::set<std::uint16_t> slots;
  for (const auto& [slot, begin] : begins)
    if (begin.sends != begin.receives) slots.insert(slot);
  return slots;
}

}  // namespace

std::vector<bool> stages_of_pipelines(const job::Job& job) {
  std::map<std::int32_t, std::size_t> class_of;
  for (std::size_t c = 0; c < job.classes.size(); ++c)
    for (const std::int32_t rank : job.classes[c].ranks) class_of[rank] = c;
  std::vector<bool> stages(job.classes.size());
  for (std::size_t c = 0; c < job.classes.size(); ++c)
    for (const std::uint16_t slot : one_way_slots(job, job.classes[c])) {
      stages[c] = true;
      for (const std::int32_t rank : members(job, job.classes[c].recording, slot))
        if (const auto other = class_of.find(rank); other != class_of.end())
          stages[other->second] = true;
    }
  return stages;
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
