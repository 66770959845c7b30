#include "report/serialization.h"

#include <algorithm>
#include <map>
#include <set>

#include "report/passes.h"
#include "report/usage.h"

namespace maya::report {
namespace {

using trace::Kind;

// A reduction in progress.
struct Pending {
  double bytes{};
  std::uint16_t stream{};
  std::uint32_t event{};  // recorded after it
  bool recorded{};
  std::set<std::uint16_t> moved_on;  // streams that got work after it was issued
};

bool is_gradient_reduction(const Op& op) {
  const auto* call = std::get_if<Collective>(&op.work);
  return call != nullptr &&
         (call->kind == CollectiveKind::all_reduce || call->kind == CollectiveKind::reduce_scatter);
}

// Visits the calls of a step. A reduction is serialized if a compute stream waits for the event
// after it before the stream got any other work.
Serialization look(const trace::Recording& recording, const Passes& passes, const Range& step,
                   const std::map<std::uint16_t, std::int64_t>& of_activations) {
  Serialization found;
  std::vector<Pending> pending;
  std::map<std::uint16_t, double> waited;  // bytes that each stream waited for immediately
  for (std::uint32_t i = step.begin; i < step.end; ++i) {
    const trace::Record& record = recording.records[i];
    if (record.kind == Kind::wide) continue;
    if (record.kind == Kind::collective && record.value < recording.ops.size()) {
      const Op& op = recording.ops[record.value];
      if (is_gradient_reduction(op) && passes.backward(i, op) &&
          !of_activations.contains(record.aux))
        pending.push_back({static_cast<double>(std::get<Collective>(op.work).bytes),
                           record.stream,
                           0,
                           false,
                           {}});
    } else if (record.kind == Kind::event_record) {
      for (Pending& one : pending)
        if (one.stream == record.stream && !one.recorded)
          one.event = record.value, one.recorded = true;
    } else if (record.kind == Kind::stream_wait_event) {
      for (Pending& one : pending)
        if (one.recorded && one.event == record.value && record.stream != one.stream) {
          if (!one.moved_on.contains(record.stream)) waited[record.stream] += one.bytes;
          one.bytes = 0;
        }
    } else if (record.kind == Kind::launch && record.value < recording.ops.size()) {
      for (Pending& one : pending) one.moved_on.insert(record.stream);
      // Only reductions before the end of the backward pass count: the last bucket cannot overlap.
      const Op& op = recording.ops[record.value];
      if (!is_matrix_work(op.work) || !passes.backward(i, op)) continue;
      double at_once = 0;
      if (auto stream = waited.find(record.stream); stream != waited.end())
        at_once = std::exchange(stream->second, 0);
      found.serialized_bytes += at_once;
      found.reduced_bytes += at_once;
      for (Pending& one : pending) found.reduced_bytes += std::exchange(one.bytes, 0);
      std::erase_if(pending, [](const Pending& one) { return one.bytes == 0; });
    }
  }
  return found;
}

}  // namespace

Serialization serialization_of(const job::Job& job) {
  Serialization all;
  for (const job::RankClass& rank_class : job.classes) {
    const Passes passes(job, rank_class);
    const auto of_activations = forward_reductions(job, rank_class);
    for (const Range& step : measured_steps(job, rank_class)) {
      const Serialization one = look(rank_class.recording, passes, step, of_activations);
      all.reduced_bytes += one.reduced_bytes;
      all.serialized_bytes += one.serialized_bytes;
    }
  }
  return all;
}

std::string serialization_help(const job::Job& job) {
  if (!serialization_of(job).most()) return "";
  std::string text =
      "the program waits for each gradient reduction right after issuing it, so none overlaps with "
      "the backward pass";
  const auto& environment = job.classes[0].recording.identity.environment;
  const bool set = std::any_of(environment.begin(), environment.end(), [](const auto& variable) {
    return variable.first == "TORCH_DIST_USE_NCCL2" && variable.second == "0";
  });
  if (!set) text += "; DDP of PyTorch 2.15 does this unless TORCH_DIST_USE_NCCL2=0 is set";
  return text;
}

}  // namespace maya::report
