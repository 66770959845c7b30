#include "report/throughput.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "report/passes.h"
#include "report/usage.h"

namespace maya::report {
namespace {

using Table = std::pair<std::int64_t, std::int64_t>;  // rows, bytes of a row
using Layer = std::pair<std::int64_t, std::int64_t>;  // m, k: the weights of a linear layer

struct Rows {
  double rows{}, calls{};
};

// Which lookups begin a forward pass that is trained. Passes of a reference model, and those that
// generate, look up the same table, and the output layer may be applied to a part of the tokens (to
// the answer and not the question). The gradient of the output layer tells how many passes are
// trained; they are the ones right before it.
class TrainedLookups {
 public:
  void forward(const Table& table, double rows) {
    if (backward_) settle();
    lookups_[table].push_back(rows);
  }
  void backward(const Layer& layer) {
    backward_ = true;
    ++gradients_[layer];
  }
  // Ends a backward pass: at the next lookup, or at the end of a step.
  void settle() {
    for (const auto& [table, rows] : lookups_) {
      double calls = 0;
      for (const std::int64_t size : {4, 2, 1})
        if (const auto found = gradients_.find({table.second / size, table.first});
            found != gradients_.end())
          calls = std::max(calls, found->second);
      // A layer that is applied in chunks does not tell its passes.
      chunks_ |= calls > static_cast<double>(rows.size());
      for (std::size_t i = 0; i < rows.size() && static_cast<double>(i) < calls; ++i)
        rows_[table] += rows[rows.size() - 1 - i];
    }
    lookups_.clear(), gradients_.clear();
    backward_ = false;
  }
  // 0: not known.
  double rows(const Table& table) const {
    const auto found = rows_.find(table);
    return chunks_ || found == rows_.end() ? 0 : found->second;
  }

 private:
  std::map<Table, std::vector<double>> lookups_;  // since the last backward pass
  std::map<Layer, double> gradients_;             // products of this backward pass
  std::map<Table, double> rows_;
  bool backward_{}, chunks_{};
};

// The lookups, matrix products and losses of the measured steps of a class, per step. The rows of a
// layer are the n of its product, because the result of a row-major program is transposed in BLAS.
struct Intake {
  std::map<Table, Rows> lookups;
  TrainedLookups trained;
  std::map<Layer, Rows> forward, backward;
  std::map<std::int64_t, double> losses;  // by columns
  std::map<std::int64_t, double> copies;  // from the host, by bytes
  const Convolution* first_convolution{};
  std::vector<const Convolution*> convolutions;  // forward, one entry a call
  double sequences{};                            // of one attention
  std::set<std::int64_t> attended;               // positions of one attention
  double attentions{}, attention_gradients{};    // calls
  bool recurrent{}, embeds{};
  double steps{1};
};

void look_at(const Op& op, bool backward, Intake& seen) {
  auto add = [](Rows& to, std::int64_t rows) { to.rows += static_cast<double>(rows), ++to.calls; };
  const Work& work = op.work;
  if (const auto* gather = std::get_if<Gather>(&work)) {
    // Rows may be copied as bytes, regardless of their type.
    if (gather->cols <= 1 || gather->table_rows <= 1) return;
    const Table table{gather->table_rows, gather->cols * bits(gather->dtype) / 8};
    add(seen.lookups[table], gather->rows);
    if (!backward) seen.trained.forward(table, static_cast<double>(gather->rows));
  } else if (const auto* gemm = std::get_if<Gemm>(&work)) {
    if (gemm->batch != 1 || gemm->groups != 1) return;
    add((backward ? seen.backward : seen.forward)[{gemm->m, gemm->k}], gemm->n);
    if (backward) seen.trained.backward({gemm->m, gemm->k});
  } else if (const auto* entropy = std::get_if<CrossEntropy>(&work)) {
    if (entropy->direction == Direction::forward)
      seen.losses[entropy->cols] += static_cast<double>(entropy->rows);
  } else if (const auto* softmax = std::get_if<Softmax>(&work)) {
    // Log-softmax and the selection of the target are two ops of one loss.
    if (softmax->log && softmax->direction == Direction::forward)
      seen.losses[-softmax->cols] += static_cast<double>(softmax->rows);
  } else if (const auto* convolution = std::get_if<Convolution>(&work)) {
    if (convolution->direction != Direction::forward || backward) return;
    if (seen.first_convolution == nullptr) seen.first_convolution = convolution;
    seen.convolutions.push_back(convolution);
  } else if (const auto* attention = std::get_if<Attention>(&work)) {
    if (attention->direction != Direction::forward) ++seen.attention_gradients;
    if (attention->direction != Direction::forward || backward) return;
    ++seen.attentions;
    seen.attended.insert(attention->batch * attention->seq_q);
    if (!attention->varlen)
      seen.sequences = std::max(seen.sequences, static_cast<double>(attention->batch));
  } else if (const auto* copy = std::get_if<Copy>(&work)) {
    if (copy->direction == CopyDirection::host_to_device) ++seen.copies[copy->bytes];
  } else if (std::holds_alternative<Rnn>(work)) {
    seen.recurrent = true;
  } else if (std::holds_alternative<TritonKernel>(work)) {
    seen.embeds |= op.name.find("embedding") != std::string::npos;
  }
}

Intake intake_of(const job::Job& job, const job::RankClass& rank_class) {
  Intake seen;
  seen.steps = measured_count(job);
  const trace::Recording& recording = rank_class.recording;
  const Passes passes(job, rank_class);
  for (const Range& step : measured_steps(job, rank_class)) {
    each_work(recording, step.begin, step.end,
              [&](const trace::Record& record, std::uint32_t index) {
                if (record.value >= recording.ops.size()) return;
                const Op& op = recording.ops[record.value];
                look_at(op, passes.backward(index, op), seen);
              });
    seen.trained.settle();
  }
  return seen;
}

// A sum over the ranks of the job for one step. Ranks that share a model have the same rows.
class Sum {
 public:
  Sum(const job::Job& job, const std::vector<Intake>& intakes, std::vector<double> shared_by)
      : job_(job), intakes_(intakes), shared_by_(std::move(shared_by)) {}
  template <class F>
  double operator()(F&& rows) const {
    double sum = 0;
    for (std::size_t c = 0; c < intakes_.size(); ++c)
      sum += rows(intakes_[c]) * static_cast<double>(job_.classes[c].ranks.size()) / shared_by_[c] /
             intakes_[c].steps;
    return sum;
  }

 private:
  const job::Job& job_;
  const std::vector<Intake>& intakes_;
  std::vector<double> shared_by_;
};

// The number of ranks that train on the same rows as a rank of this class: those that reduce
// activations in the forward pass. Small reductions (SyncBatchNorm, metrics, losses) do not count.
double shared_by(const job::Job& job, const job::RankClass& rank_class, const Intake& intake) {
  constexpr std::int64_t statistics = 16 << 10;
  double rows = 0;
  for (const auto& [table, found] : intake.lookups)
    rows = std::max(rows, found.rows / std::max(1.0, found.calls));
  double shared = 1;
  for (const auto& [slot, bytes] : forward_reductions(job, rank_class))
    if (slot < rank_class.recording.communicators.size() && bytes >= statistics &&
        static_cast<double>(bytes) >= 16 * 2 * rows)
      shared = std::max<double>(shared, rank_class.recording.communicators[slot].size);
  return shared;
}

double rows_of(const std::map<Layer, Rows>& layers, std::int64_t m, std::int64_t k) {
  const auto found = layers.find({m, k});
  return found == layers.end() ? 0 : found->second.rows;
}

// The rows of the output layer that belongs to a table, in forward or backward passes. Its weights
// may have another type than the table.
double output_rows(const Intake& intake, const Table& table, bool backward) {
  const auto [vocabulary, row_bytes] = table;
  double rows = 0;
  for (std::int64_t size : {4, 2, 1}) {
    const std::int64_t width = row_bytes / size;
    rows = std::max(rows, backward ? rows_of(intake.backward, width, vocabulary)
                                   : rows_of(intake.forward, vocabulary, width));
  }
  return rows;
}

// In a compiled model the lookup is part of a fused kernel. The output layer is still a matrix
// product: the largest one, used less often than those of the layers, and with a gradient.
Layer output_layer(const Intake& intake) {
  double most_calls = 0;
  for (const auto& [layer, rows] : intake.forward) most_calls = std::max(most_calls, rows.calls);
  Layer best{0, 0};
  for (const auto& [layer, rows] : intake.forward)
    if (layer.first * layer.second > best.first * best.second) best = layer;
  auto trained_once = [&](const Layer& layer, const Rows& rows) {
    return 2 * rows.calls <= most_calls && rows_of(intake.backward, layer.second, layer.first) > 0;
  };
  const auto found = intake.forward.find(best);
  if (found != intake.forward.end() && best.first >= 2 * best.second &&
      trained_once(best, found->second))
    return best;
  // With a small vocabulary it is not the largest product, but the one used least often. Where
  // other products are rare too (gates), it must be applied to as many rows as the layers are.
  std::vector<Layer> once;
  double least = most_calls, most_rows = 0;
  int rare = 0;
  for (const auto& [layer, rows] : intake.forward) {
    most_rows = std::max(most_rows, rows.rows / rows.calls);
    if (!trained_once(layer, rows)) continue;
    if (rows.calls < least) once.clear(), least = rows.calls;
    if (rows.calls == least) once.push_back(layer);
    ++rare;
  }
  if (rare > 1)
    std::erase_if(once, [&](const Layer& layer) {
      const Rows& rows = intake.forward.at(layer);
      return rows.rows != most_rows * rows.calls;
    });
  return once.size() == 1 ? once[0] : Layer{0, 0};
}

double tokens_of_language_model(const std::vector<Intake>& intakes, const Sum& sum) {
  // The vocabulary is the largest table for which some rank has an output layer or a loss.
  Table table{0, 0};
  for (const Intake& intake : intakes)
    for (const auto& lookup : intake.lookups) {
      const Table& candidate = lookup.first;
      const bool output =
          std::any_of(intakes.begin(), intakes.end(), [&candidate](const Intake& other) {
            // A gradient is no evidence: of a graph network's weights it sums over as many rows as
            // its table of nodes has.
            return output_rows(other, candidate, false) > 0 ||
                   other.losses.contains(candidate.first) ||
                   other.losses.contains(-candidate.first);
          });
      if (output && candidate.first * candidate.second > table.first * table.second)
        table = candidate;
    }
  if (table.first > 0) {
    const double looked_up = sum([&](const Intake& i) {
      const auto found = i.lookups.find(table);
      return found == i.lookups.end() ? 0 : found->second.rows;
    });
    const double forward = sum([&](const Intake& i) { return output_rows(i, table, false); });
    const double backward = sum([&](const Intake& i) { return output_rows(i, table, true); });
    // Forward passes without a backward pass (a reference model, generation) are not counted.
    if (backward > 0 && forward >= 1.5 * backward && backward < looked_up) {
      const double trained = sum([&](const Intake& i) { return i.trained.rows(table); });
      return trained > 0 ? trained : backward;
    }
    return looked_up;
  }
  double tokens = 0;
  for (const Intake& intake : intakes) {
    if (!intake.embeds) continue;
    for (const Intake& other : intakes) {
      const Layer output = output_layer(other);
      if (output.first == 0) continue;
      tokens =
          sum([&](const Intake& i) { return rows_of(i.backward, output.second, output.first); });
    }
  }
  return tokens;
}

// A model without an output for each word (a reward or a value of each sequence) has no loss that
// tells its rows. What it looks up are tokens if its attention has as many positions.
double tokens_that_attend(const Sum& sum) {
  return sum([](const Intake& intake) {
    Table table{0, 0};
    double tokens = 0;
    for (const auto& [candidate, found] : intake.lookups) {
      const auto rows = static_cast<std::int64_t>(found.rows / found.calls);
      if (!intake.attended.contains(rows)) continue;
      if (candidate.first * candidate.second <= table.first * table.second) continue;
      table = candidate;
      tokens = found.rows;
    }
    // Of the passes those with a gradient.
    const double trained = intake.attention_gradients;
    return trained > 0 && trained < intake.attentions ? tokens * trained / intake.attentions
                                                      : tokens;
  });
}

struct Images {
  double count{};
  bool pictures{};
};

Images images_of(const Sum& sum) {
  Images images;
  images.count = sum([&](const Intake& intake) {
    const Convolution* first = intake.first_convolution;
    if (first == nullptr) return 0.0;
    // Images and their latents have few channels and two dimensions.
    constexpr std::int64_t most_channels = 16;
    images.pictures |= first->h > 1 && first->w > 1 && first->d == 1 && first->c <= most_channels;
    double rows = 0, batches = 0;
    for (const Convolution* other : intake.convolutions)
      if (std::tie(other->c, other->k, other->kh, other->kw) ==
          std::tie(first->c, first->k, first->kh, first->kw))
        rows += static_cast<double>(other->n), ++batches;
    // Counts the batches that were copied from the host, if there are copies with the size of the
    // first convolution's input. A loader that prefetches may have copied the first batch before
    // the measured steps began.
    const std::int64_t elements = first->n * first->c * first->d * first->h * first->w;
    for (std::int64_t size : {4, 2, 1})
      if (const auto copied = intake.copies.find(elements * size); copied != intake.copies.end()) {
        const bool ahead = intake.steps > 1 && copied->second + 1 == batches;
        return (ahead ? batches : copied->second) * static_cast<double>(first->n);
      }
    return rows;
  });
  return images;
}

double loss_rows(const Intake& intake) {
  double entropy = 0, softmax = 0;
  for (const auto& [columns, rows] : intake.losses) (columns > 0 ? entropy : softmax) += rows;
  return entropy > 0 ? entropy : softmax;
}

}  // namespace

std::optional<Throughput> throughput_of(const job::Job& job, double step_ms) {
  if (step_ms <= 0) return std::nullopt;
  std::vector<Intake> intakes;
  std::vector<double> shared;
  for (const job::RankClass& rank_class : job.classes) {
    intakes.push_back(intake_of(job, rank_class));
    shared.push_back(shared_by(job, rank_class, intakes.back()));
  }
  const Sum sum(job, intakes, shared);
  auto result = [&](const char* unit, double rows, const char* found_by) {
    return Throughput{unit, rows, rows / step_ms * 1000, found_by};
  };
  if (const double tokens = tokens_of_language_model(intakes, sum); tokens > 0)
    return result("tokens", tokens, "input");
  if (const Images images = images_of(sum); images.count > 0)
    return result(images.pictures ? "images" : "samples", images.count, "input");
  const double rows = sum(loss_rows);
  if (rows <= 0) {
    const double tokens = tokens_that_attend(sum);
    return tokens > 0 ? std::optional(result("tokens", tokens, "input")) : std::nullopt;
  }
  double sequences = 0;
  bool recurrent = false;
  for (const Intake& intake : intakes) {
    sequences = std::max(sequences, intake.sequences);
    recurrent |= intake.recurrent;
  }
  const bool tokens = recurrent || (sequences > 0 && rows > 2 * sequences * job.world_size);
  return result(tokens ? "tokens" : "samples", rows, "loss");
}

}  // namespace maya::report
