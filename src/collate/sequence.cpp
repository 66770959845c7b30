#include "collate/sequence.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "collate/hash.h"

namespace maya::collate {
namespace {

using trace::Kind;

constexpr std::uint64_t base = 0x2545f4914f6cdd1dull;  // odd; arithmetic is modulo 2^64

bool is_heavy(const Work& work) {
  return std::holds_alternative<Gemm>(work) || std::holds_alternative<Convolution>(work) ||
         std::holds_alternative<Attention>(work) || std::holds_alternative<Rnn>(work) ||
         std::holds_alternative<TritonKernel>(work);
}

// No smaller than the caches of the GPUs that compilers tune for.
bool is_large_fill(const Work& work) {
  constexpr std::int64_t least_bytes = 4 << 20;
  const auto* fill = std::get_if<Fill>(&work);
  return fill != nullptr && fill->bytes >= least_bytes;
}

struct Symbol {
  std::uint64_t exact{}, shape{};
  bool optimizer{}, heavy{}, gradient{}, clears_cache{};
  std::size_t weight{1};
};

// Determines which multi-tensor kernels update the parameters: those of a known optimizer if there
// are any; else those that combine two lists (parameters and their changes); else all. They must
// cover a good part of the elements of the largest one: lists are also cleared, clipped, scaled and
// copied, sometimes layer by layer, and that is not an update.
class Updates {
 public:
  explicit Updates(const std::vector<Op>& ops) {
    for (const Op& op : ops)
      if (const auto* step = std::get_if<OptimizerStep>(&op.work)) {
        best_ = std::max(best_, rank(*step));
        most_ = std::max(most_, step->elements);
      }
  }
  bool operator()(const Op& op) const {
    const auto* step = std::get_if<OptimizerStep>(&op.work);
    if (step == nullptr || rank(*step) != best_) return false;
    return best_ == Rank::named || step->elements >= most_ / 100;
  }
  bool certain() const { return best_ != Rank::one_list; }
  bool named() const { return best_ == Rank::named; }

 private:
  enum class Rank : std::uint8_t { one_list, lists, named };
  static Rank rank(const OptimizerStep& step) {
    if (step.kind != OptimizerKind::other) return Rank::named;
    return step.bytes_read >= 2 * step.elements * (bits(step.dtype) / 8) && step.elements > 0
               ? Rank::lists
               : Rank::one_list;
  }

  Rank best_{};
  std::int64_t most_{};
};

}  // namespace

bool computes_gradients(const Op& op) {
  const bool direction = std::visit(
      [](const auto& work) {
        if constexpr (requires { work.direction == Direction::forward; })
          return work.direction != Direction::forward;
        else
          return false;
      },
      op.work);
  return direction || op.name.find("backward") != std::string::npos;
}

bool is_update(const trace::Recording& recording, const trace::Record& record) {
  // The name of the optimizer follows.
  constexpr std::string_view source = "optimizer ";
  return record.kind == Kind::step_boundary && record.value < recording.strings.size() &&
         recording.strings[record.value].starts_with(source);
}

Sequence::Sequence(const trace::Recording& recording) {
  std::vector<Symbol> ops, graphs;
  Updates updates(recording.ops);
  certain_updates_ = updates.certain();
  named_updates_ = updates.named();
  for (const Op& op : recording.ops)
    ops.push_back({hash_op(op), hash_op_shape(op), updates(op), is_heavy(op.work),
                   computes_gradients(op), is_large_fill(op.work)});
  auto of_record = [&](const trace::Record& r) -> const Symbol* {
    switch (r.kind) {
      case Kind::launch:
      case Kind::copy:
      case Kind::fill:
      case Kind::collective:
      case Kind::point_to_point:
        return &ops[r.value];
      case Kind::graph_launch:
        return &graphs[r.value];
      default:
        return nullptr;
    }
  };
  for (const trace::Graph& graph : recording.graphs) {
    Symbol all{graph.nodes.size(), graph.nodes.size()};
    all.weight = std::max<std::size_t>(1, graph.nodes.size());
    for (const trace::GraphNode& node : graph.nodes)
      if (node.record.kind != Kind::graph_launch)
        if (const Symbol* s = of_record(node.record)) {
          all.exact = mix(all.exact, s->exact);
          all.shape = mix(all.shape, s->shape);
          all.optimizer |= s->optimizer;
          all.heavy |= s->heavy;
          all.gradient |= s->gradient;
        }
    graphs.push_back(all);
  }
  bool found = false;
  for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
    const trace::Record& r = recording.records[i];
    if (is_update(recording, r)) said_.push_back({record_.size(), r.value});
    const Symbol* s = of_record(r);
    if (s == nullptr) continue;
    if (s->heavy && !found) first_heavy_ = record_.size(), found = true;
    record_.push_back(i);
    optimizer_.push_back(s->optimizer);
    gradient_.push_back(s->gradient);
    clears_cache_.push_back(s->clears_cache);
    thread_.push_back(r.thread);
    heavy_.push_back(heavy_.back() + s->heavy);
    weight_.push_back(weight_.back() + s->weight);
    exact_.push_back(exact_.back() * base + s->exact);
    shape_.push_back(shape_.back() * base + s->shape);
    power_.push_back(power_.back() * base);
  }
  check_said();
}

// Each update follows a backward pass. Several passes' worth of gradients behind the last one:
// updates go on where nobody says so. A graph may hold a backward pass. Where no gradient can be
// told from other work (backward passes in the program's own thread), all training work counts.
void Sequence::check_said() {
  if (said_.empty() || heavy_.back() == 0) return said_.clear();
  const std::uint16_t program = thread(first_heavy_);
  auto gradients = [&](std::size_t begin, std::size_t end, bool all) {
    std::size_t sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t weight = weight_between(i, i + 1);
      if (gradient(i) || (heavy(i) && (all || thread(i) != program || weight > 1))) sum += weight;
    }
    return sum;
  };
  const bool all = gradients(0, size(), false) == 0;
  std::size_t begin = 0, most = 0;
  for (const Said& update : said_) {
    most = std::max(most, gradients(begin, update.behind, all));
    begin = update.behind;
  }
  constexpr std::size_t passes = 2;
  if (gradients(begin, size(), all) > passes * most) said_.clear();
}

std::size_t Sequence::at(std::uint32_t record) const {
  return static_cast<std::size_t>(std::lower_bound(record_.begin(), record_.end(), record) -
                                  record_.begin());
}

std::uint64_t Sequence::exact(std::size_t begin, std::size_t end) const {
  return exact_[end] - exact_[begin] * power_[end - begin];
}
std::uint64_t Sequence::shape(std::size_t begin, std::size_t end) const {
  return shape_[end] - shape_[begin] * power_[end - begin];
}

std::vector<Stretch> benchmarks(const Sequence& sequence) {
  constexpr std::size_t longest_round = 16, fewest_rounds = 5;
  struct Run {
    Stretch stretch;
    std::size_t rounds{}, last{};  // where the last round begins
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (!sequence.clears_cache(i)) continue;
    const std::size_t round = runs.empty() ? 0 : i - runs.back().last;
    if (!runs.empty() && round <= longest_round &&
        sequence.exact(i, i + 1) == sequence.exact(i - round, i - round + 1)) {
      Run& run = runs.back();
      // The last round is as long as the one before.
      run.stretch.end = std::min(sequence.size(), i + round);
      ++run.rounds, run.last = i;
    } else {
      runs.push_back({{i, i + 1}, 1, i});
    }
  }
  std::vector<Stretch> found;
  for (const Run& run : runs)
    if (run.rounds >= fewest_rounds) found.push_back(run.stretch);
  return found;
}

Regularity regularity(const Sequence& sequence, std::span<const std::size_t> cuts) {
  return regularity(sequence, cuts, {sequence.first_heavy(), sequence.size()});
}

Regularity regularity(const Sequence& sequence, std::span<const std::size_t> cuts, Stretch within) {
  Regularity best;
  if (cuts.size() < 2) return best;
  const std::size_t segments = cuts.size() - 1;
  // Initialization need not be covered by steps.
  const auto all =
      static_cast<double>(sequence.weight_between(std::min(within.begin, cuts[0]), within.end));
  bool settled = false;  // most steps are identical
  struct Kind {
    std::uint64_t signature{};
    std::size_t whole{}, weight{}, length{};
    std::size_t endings{};  // segments with the same end, perhaps after an evaluation
  };
  // A step is the kind of segment that covers most of the sequence.
  auto judge = [&](double weight, bool same_work, auto&& signature) {
    std::vector<Kind> kinds;
    std::unordered_map<std::uint64_t, std::size_t> index;
    std::size_t longest = 0;
    for (std::size_t k = 0; k < segments; ++k) {
      const std::size_t length = cuts[k + 1] - cuts[k];
      const std::uint64_t key = signature(cuts[k], cuts[k + 1]);
      const auto [at, fresh] = index.try_emplace(key, kinds.size());
      if (fresh) kinds.push_back({key});
      Kind& kind = kinds[at->second];
      ++kind.whole, kind.weight += sequence.weight_between(cuts[k], cuts[k + 1]),
          kind.length = length;
      longest = std::max(longest, length);
    }
    std::erase_if(kinds, [](const Kind& kind) { return kind.whole < 2; });
    if (kinds.empty()) return;
    std::sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) {
      return std::tuple(a.weight, b.signature) > std::tuple(b.weight, a.signature);
    });
    // All segments are compared with each kind. If there are more kinds than this, they are not
    // steps.
    constexpr std::size_t most_kinds = 8;
    if (kinds.size() > most_kinds) kinds.resize(most_kinds);
    for (Kind& kind : kinds) {
      kind.endings = kind.whole;
      for (std::size_t k = 0; same_work && k < segments; ++k)
        kind.endings += cuts[k + 1] - cuts[k] > kind.length &&
                        signature(cuts[k + 1] - kind.length, cuts[k + 1]) == kind.signature;
    }
    auto score = [&](const Kind& kind) {
      const std::size_t covered = kind.weight * kind.endings / kind.whole;
      return weight * static_cast<double>(covered) / all * static_cast<double>(kind.endings) /
             static_cast<double>(segments);
    };
    const Kind* top = &kinds[0];
    for (const Kind& kind : kinds)
      if (score(kind) > score(*top)) top = &kind;
    if (score(*top) <= best.score) return;
    best.score = score(*top);
    // Most steps are identical. Those that differ only in sizes are a smaller last batch.
    if (settled) return;
    // The most frequent kind is the steady one; others may be longer because of an evaluation.
    for (const Kind& kind : kinds)
      if (kind.length >= longest / 20 && kind.endings > top->endings) top = &kind;
    settled = same_work && 2 * top->endings > segments;
    best.steady.clear();
    for (std::size_t k = 0; k < segments; ++k)
      best.steady.push_back(signature(cuts[k], cuts[k + 1]) == top->signature);
  };
  judge(1.0, true, [&](std::size_t a, std::size_t b) { return sequence.exact(a, b); });
  const bool equal = settled;
  judge(0.9, true, [&](std::size_t a, std::size_t b) { return sequence.shape(a, b); });
  settled = equal;  // steps with the same code may still differ in their data
  // Data-dependent variation: steps of nearly the same length. If most have the same amount of
  // training work, a step with more contains an evaluation.
  std::vector<std::size_t> lengths;
  std::map<std::size_t, std::size_t> works;
  for (std::size_t k = 0; k < segments; ++k) {
    lengths.push_back(cuts[k + 1] - cuts[k]);
    ++works[sequence.heavy_between(cuts[k], cuts[k + 1])];
  }
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(segments / 2),
                   lengths.end());
  const auto median = static_cast<double>(lengths[segments / 2]);
  const auto usual = std::max_element(
      works.begin(), works.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const bool most = 2 * usual->second > segments;
  judge(0.7, false, [&](std::size_t a, std::size_t b) {
    const auto length = static_cast<double>(b - a);
    const bool alike = length >= 0.9 * median && length <= 1.1 * median;
    return std::uint64_t{alike && (!most || sequence.heavy_between(a, b) == usual->first)};
  });
  return best;
}

bool has_training(const Sequence& sequence) {
  std::int32_t thread = -1;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (sequence.gradient(i) || sequence.optimizer(i)) return true;
    if (!sequence.heavy(i)) continue;
    if (thread >= 0 && thread != sequence.thread(i)) return true;
    thread = sequence.thread(i);
  }
  return false;
}

}  // namespace maya::collate
