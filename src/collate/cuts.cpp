#include "collate/cuts.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "collate/hash.h"

namespace maya::collate {
namespace {

using trace::Kind;

// Adds a first, partial segment from the start of training to the first end of a step.
void open_first(const Sequence& sequence, Cuts& cuts) {
  std::size_t begin = sequence.first_heavy();
  if (!cuts.empty() && begin < cuts.front()) cuts.insert(cuts.begin(), begin);
}

// Whether most segments contain training work, provided that training work can be identified.
bool trains(const Sequence& sequence, const Cuts& cuts) {
  if (sequence.heavy_between(0, sequence.size()) == 0) return true;
  std::size_t with = 0;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k)
    with += sequence.heavy_between(cuts[k], cuts[k + 1]) > 0;
  return 2 * with >= cuts.size() - 1;
}

struct Best {
  Cuts cuts;
  double score{-1};
  // Among equal scores, prefers more segments, then the earlier start.
  void offer(const Sequence& sequence, Cuts candidate, std::size_t exactly) {
    offer(sequence, std::move(candidate), exactly, {sequence.first_heavy(), sequence.size()});
  }
  void offer(const Sequence& sequence, Cuts candidate, std::size_t exactly, Stretch within) {
    if (candidate.size() < 2 || (exactly != 0 && candidate.size() != exactly + 1)) return;
    if (!trains(sequence, candidate)) return;
    double value = regularity(sequence, candidate, within).score;
    bool better = value > score ||
                  (value == score && (candidate.size() > cuts.size() ||
                                      (candidate.size() == cuts.size() && candidate[0] < cuts[0])));
    if (better) cuts = std::move(candidate), score = value;
  }
};

struct Update {
  std::size_t end{};
  std::uint64_t hash{};
};

// The number of updates after which the same updates follow in the same order; 0 if they never do.
std::size_t period(const std::vector<Update>& updates) {
  for (std::size_t p = 1; 2 * p <= updates.size() || p == 1; ++p) {
    std::size_t i = p;
    while (i < updates.size() && updates[i].hash == updates[i - p].hash) ++i;
    if (i >= updates.size()) return p;
  }
  return 0;
}

// Cuts where a round of updates ends. Updates without training work between them (matrix products
// …) belong together. With one optimizer there is one update per step, which is the usual case,
// also with evaluations or pauses. Several optimizers that alternate (one update of the generator,
// five of its critic) and updates of single layers inside the backward pass repeat after a round; a
// step is then one round.
Cuts cuts_by_whole_updates(const Sequence& sequence, const std::vector<std::size_t>& at) {
  std::vector<Update> updates;
  std::uint64_t hash{};
  for (std::size_t i = 0; i < at.size(); ++i) {
    hash = mix(hash, sequence.exact(at[i], at[i] + 1));
    if (i + 1 < at.size() && sequence.heavy_between(at[i], at[i + 1]) == 0) continue;
    updates.push_back({at[i] + 1, hash});
    hash = 0;
  }
  const std::size_t round = period(updates);
  Cuts cuts;
  if (round > 0)
    for (std::size_t i = round - 1; i < updates.size(); i += round) cuts.push_back(updates[i].end);
  open_first(sequence, cuts);
  return cuts;
}

// The same from what the optimizers said. Which one it was tells updates apart, where they take
// turns; where they do so without a rule, the one that updates least often ends the step.
Cuts cuts_by_said_updates(const Sequence& sequence) {
  const auto& said = sequence.said();
  std::vector<Update> updates;
  std::map<std::uint32_t, Cuts> of_source;
  std::uint64_t hash{};
  for (std::size_t i = 0; i < said.size(); ++i) {
    Cuts& own = of_source[said[i].source];
    if (own.empty() || sequence.heavy_between(own.back(), said[i].behind) > 0)
      own.push_back(said[i].behind);
    hash = mix(hash, said[i].source);
    if (i + 1 < said.size() && sequence.heavy_between(said[i].behind, said[i + 1].behind) == 0)
      continue;
    updates.push_back({said[i].behind, hash});
    hash = 0;
  }
  Cuts cuts;
  if (const std::size_t round = period(updates); round > 0) {
    for (std::size_t i = round - 1; i < updates.size(); i += round) cuts.push_back(updates[i].end);
  } else {
    for (auto& [source, own] : of_source)
      if (cuts.size() < 2 || (own.size() >= 2 && own.size() < cuts.size())) cuts = own;
  }
  open_first(sequence, cuts);
  return cuts;
}

// An autograd engine runs backward passes in a thread of its own. Threads that only copy data do
// not run backward passes.
std::vector<Stretch> backward_passes(const Sequence& sequence) {
  std::vector<Stretch> passes;
  if (sequence.size() == 0) return passes;
  const std::uint16_t program = sequence.thread(sequence.first_heavy());
  bool fresh = true;  // the program's thread has computed since the last pass
  for (std::size_t i = sequence.first_heavy(); i < sequence.size(); ++i) {
    if (sequence.thread(i) == program) {
      fresh |= sequence.heavy(i);
      continue;
    }
    if (fresh) passes.push_back({i, i});
    fresh = false;
    passes.back().end = i + 1;
  }
  std::erase_if(passes,
                [&](const Stretch& p) { return sequence.heavy_between(p.begin, p.end) == 0; });
  return passes;
}

// The number of symbols at the end of both that are the same code.
std::size_t common_end(const Sequence& sequence, const Stretch& a, const Stretch& b) {
  std::size_t low = 0, high = std::min(a.size(), b.size());
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (sequence.shape(a.end - middle, a.end) == sequence.shape(b.end - middle, b.end))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

}  // namespace

std::vector<Range> ranges_named(const trace::Recording& recording, std::string_view name) {
  std::vector<Range> ranges;
  int depth = 0, open = 0;
  for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
    const trace::Record& r = recording.records[i];
    if (r.kind == Kind::range_push) {
      ++depth;
      if (open == 0 && r.value < recording.strings.size() && recording.strings[r.value] == name) {
        ranges.push_back({i + 1, static_cast<std::uint32_t>(recording.records.size())});
        open = depth;
      }
    } else if (r.kind == Kind::range_pop) {
      if (open != 0 && depth == open) ranges.back().end = i + 1, open = 0;
      --depth;
    }
  }
  // A range that was never closed although the program continued ended with an exception.
  if (open != 0 && (ranges.size() > 1 || recording.complete)) ranges.pop_back();
  return ranges;
}

Cuts cuts_by_annotation(const trace::Recording& recording, const Sequence& sequence) {
  // There may be several sources (a profiler, optimizer hooks). The one with the fewest marks, but
  // more than one, marks whole steps.
  std::map<std::uint32_t, Cuts> sources;
  for (std::uint32_t i = 0; i < recording.records.size(); ++i)
    if (recording.records[i].kind == Kind::step_boundary &&
        !is_update(recording, recording.records[i]))
      sources[recording.records[i].value].push_back(sequence.at(i));
  Cuts best;
  for (auto& [source, cuts] : sources) {
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (best.size() < 2 || (cuts.size() >= 2 && cuts.size() < best.size())) best = cuts;
  }
  open_first(sequence, best);
  return best;
}

Cuts cuts_by_optimizer(const Sequence& sequence, std::size_t exactly) {
  if (!sequence.said().empty() && !sequence.named_updates()) {
    Cuts cuts = cuts_by_said_updates(sequence);
    if (cuts.size() >= 2 && (exactly == 0 || cuts.size() == exactly + 1)) return cuts;
  }
  std::vector<std::size_t> at, gaps;
  for (std::size_t i = 0; i < sequence.size(); ++i)
    if (sequence.optimizer(i)) {
      if (!at.empty()) gaps.push_back(i - at.back());
      at.push_back(i);
    }
  if (at.empty()) return {};
  if (sequence.heavy_between(0, sequence.size()) > 0) {
    Cuts whole = cuts_by_whole_updates(sequence, at);
    if (whole.size() >= 2 && (exactly == 0 || whole.size() == exactly + 1)) return whole;
  }
  // An update consists of many launches close together; forward and backward passes are between
  // updates. The threshold for "close" depends on the program, so each clear jump in the widths of
  // the gaps is tried.
  std::vector<std::size_t> widths = gaps;
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  std::vector<std::size_t> thresholds{sequence.size()};  // one update only
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (i == 0 || widths[i] >= 1.5 * static_cast<double>(widths[i - 1]))
      thresholds.push_back(widths[i]);
  Best best;
  for (std::size_t threshold : thresholds) {
    Cuts cuts;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (i + 1 == at.size() || gaps[i] >= threshold) cuts.push_back(at[i] + 1);
    open_first(sequence, cuts);
    best.offer(sequence, std::move(cuts), exactly);
  }
  return best.cuts;
}

// Between two backward passes the program's thread runs an update, perhaps an evaluation, and the
// next forward pass. With gradient accumulation there is mostly only a forward pass between them; a
// step then ends where there is more. This method does not depend on multi-tensor kernels, so it
// also finds the steps of optimizers that are written tensor by tensor.
Cuts cuts_by_backward(const Sequence& sequence) {
  const std::vector<Stretch> passes = backward_passes(sequence);
  if (passes.size() < 2) return {};
  std::vector<Stretch> between;
  for (std::size_t k = 0; k + 1 < passes.size(); ++k)
    between.push_back({passes[k].end, passes[k + 1].begin});
  // All of them end with the forward pass. The first one may include initialization.
  const std::size_t settled = between.size() > 2 ? 1 : 0;
  std::size_t forward = SIZE_MAX;
  for (std::size_t k = settled; k + 1 < between.size(); ++k)
    forward = std::min(forward, common_end(sequence, between[k], between[k + 1]));
  // The work of a stretch before its forward pass.
  struct Extra {
    std::size_t length{}, heavy{};
  };
  std::vector<Extra> extras;
  for (const Stretch& p : between) {
    const std::size_t length = p.size() - std::min(p.size(), forward);
    extras.push_back({length, sequence.heavy_between(p.begin, p.begin + length)});
  }
  const std::span<const Extra> usual = std::span<const Extra>(extras).subspan(settled);
  const Extra least =
      *std::min_element(usual.begin(), usual.end(),
                        [](const Extra& a, const Extra& b) { return a.length < b.length; });
  // An update has many launches and no training work. Logging has few launches; an evaluation has
  // training work.
  constexpr std::size_t few = 16;
  std::size_t update = SIZE_MAX;
  for (const Extra& e : usual)
    if (e.length - least.length >= std::max(least.length, few) && e.heavy == least.heavy)
      update = std::min(update, e.length);
  const bool accumulates = update != SIZE_MAX;
  if (!accumulates) update = least.length;
  Cuts cuts;
  for (std::size_t k = 0; k < between.size(); ++k)
    if (!accumulates || extras[k].length >= update)
      cuts.push_back(passes[k].end + std::min(update, extras[k].length));
  cuts.push_back(std::min(passes.back().end + update, sequence.size()));
  open_first(sequence, cuts);
  return cuts;
}

namespace {

Cuts cuts_by_period(const Sequence& sequence, std::size_t exactly, Stretch within) {
  // A sequence of ops that occurs once per step is an anchor. It is recognised by how equal the
  // segments between its occurrences are. All sequences of one length together have as many
  // occurrences as there are symbols, so trying all of them takes linear time.
  Best best;
  for (std::size_t width : {std::size_t{1}, std::size_t{4}, std::size_t{16}}) {
    if (within.size() < 2 * width) break;
    for (bool exact : {true, false}) {
      std::unordered_map<std::uint64_t, Cuts> occurrences;
      for (std::size_t i = within.begin; i + width <= within.end; ++i)
        occurrences[exact ? sequence.exact(i, i + width) : sequence.shape(i, i + width)].push_back(
            i);
      std::vector<const Cuts*> candidates;  // in order of appearance: the map's order is arbitrary
      for (const auto& [hash, places] : occurrences)
        if (places.size() >= 2) candidates.push_back(&places);
      std::sort(candidates.begin(), candidates.end(),
                [](const Cuts* a, const Cuts* b) { return a->front() < b->front(); });
      for (const Cuts* places : candidates) {
        Cuts cuts = *places;
        if (exactly != 0)
          cuts.push_back(within.end);  // the last of `exactly` segments ends with the run
        best.offer(sequence, std::move(cuts), exactly, within);
      }
    }
  }
  // There is a period only if equal segments cover a good part of the run.
  return best.score >= (exactly != 0 ? 0.5 : 0.3) ? best.cuts : Cuts{};
}

}  // namespace

Cuts cuts_by_period(const Sequence& sequence, std::size_t exactly) {
  // Kernels that a compiler times repeat more often than what the program is for. That is looked
  // for where most of the other work is. Between benchmarks a kernel may also be tried without
  // clearing the cache, but then it is alone.
  auto several_kinds = [&](const Stretch& s) {
    for (std::size_t i = s.begin + 1; i < s.end; ++i)
      if (sequence.exact(i, i + 1) != sequence.exact(s.begin, s.begin + 1)) return true;
    return false;
  };
  const Stretch all{sequence.first_heavy(), sequence.size()};
  std::vector<Stretch> timed = benchmarks(sequence);
  if (timed.empty()) return cuts_by_period(sequence, exactly, all);
  Stretch most{};
  std::size_t heavy = 0, begin = all.begin;
  timed.push_back({sequence.size(), sequence.size()});
  for (const Stretch& run : timed) {
    const Stretch between{begin, std::max(begin, run.begin)};
    begin = std::max(begin, run.end);
    if (const std::size_t work = sequence.heavy_between(between.begin, between.end);
        work > heavy && several_kinds(between))
      most = between, heavy = work;
  }
  if (Cuts cuts = cuts_by_period(sequence, exactly, most); !cuts.empty()) return cuts;
  return cuts_by_period(sequence, exactly, all);
}

}  // namespace maya::collate
