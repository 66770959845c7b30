#include "report/throughput.h"

#include <algorithm>

#include "report/usage.h"

namespace maya::report {
namespace {

// Reductions of less than this in the forward pass are statistics (SyncBatchNorm, metrics), not
// activations.
constexpr std::int64_t activation_bytes = 1 << 20;

struct Seen {
  double rows{};       // of the loss, a step
  double sequences{};  // of one attention
  bool recurrent{};
  double shared_by{1};  // tensor-parallel ranks
};

Seen look(const job::Job& job, const job::RankClass& rank_class) {
  Seen seen;
  const trace::Recording& recording = rank_class.recording;
  double entropy_rows = 0, softmax_rows = 0;  // log-softmax and the pick are two ops of one loss
  auto visit = [&](const trace::Record& record, std::uint32_t) {
    if (record.value >= recording.ops.size()) return;
    const maya::Work& work = recording.ops[record.value].work;
    if (const auto* entropy = std::get_if<CrossEntropy>(&work)) {
      if (entropy->direction == Direction::forward)
        entropy_rows += static_cast<double>(entropy->rows);
    } else if (const auto* softmax = std::get_if<Softmax>(&work)) {
      if (softmax->log && softmax->direction == Direction::forward)
        softmax_rows += static_cast<double>(softmax->rows);
    } else if (const auto* attention = std::get_if<Attention>(&work)) {
      if (attention->direction == Direction::forward && !attention->varlen)
        seen.sequences = std::max(seen.sequences, static_cast<double>(attention->batch));
    } else if (std::holds_alternative<Rnn>(work)) {
      seen.recurrent = true;
    } else if (const auto* collective = std::get_if<Collective>(&work)) {
      const bool reduces = collective->kind == CollectiveKind::all_reduce ||
                           collective->kind == CollectiveKind::reduce_scatter;
      const bool before_loss = entropy_rows + softmax_rows == 0;
      if (before_loss && seen.sequences > 0 && reduces && collective->bytes >= activation_bytes &&
          record.aux < recording.communicators.size())
        seen.shared_by = std::max<double>(seen.shared_by, recording.communicators[record.aux].size);
    }
  };
  for (const Range& step : measured_steps(job, rank_class))
    each_work(recording, step.begin, step.end, visit);
  seen.rows = (entropy_rows > 0 ? entropy_rows : softmax_rows) / measured_count(job);
  return seen;
}

}  // namespace

std::optional<Throughput> throughput_from_loss(const job::Job& job, double step_ms) {
  double rows = 0;
  double sequences = 0;
  bool recurrent = false;
  for (const job::RankClass& rank_class : job.classes) {
    const Seen seen = look(job, rank_class);
    rows += seen.rows * static_cast<double>(rank_class.ranks.size()) / seen.shared_by;
    sequences = std::max(sequences, seen.sequences);
    recurrent |= seen.recurrent;
  }
  if (rows <= 0 || step_ms <= 0) return std::nullopt;
  const bool tokens = recurrent || (sequences > 0 && rows > 2 * sequences * job.world_size);
  return Throughput{tokens ? "tokens" : "samples", rows, rows / step_ms * 1000, "loss"};
}

}  // namespace maya::report
