#include "collate/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "collate/cuts.h"
#include "collate/host_times.h"
#include "collate/sequence.h"

namespace maya::collate {
namespace {

using trace::Kind;

// The work of one step of one class, to distinguish steady steps from warm-up.
struct Content {
  std::uint64_t host_ns{};
  bool sets_up{};  // creates communicators or allocates device memory
};

std::vector<Content> contents(const job::RankClass& c) {
  std::vector<Content> result;
  for (std::size_t k = 0; k + 1 < c.step_begin.size(); ++k) {
    Content content;
    for (std::uint32_t i = c.step_begin[k]; i < c.step_begin[k + 1]; ++i) {
      const trace::Record& r = c.recording.records[i];
      if (r.kind == Kind::wide) continue;
      content.host_ns += host_ns(r);
      content.sets_up |= r.kind == Kind::communicator_create || r.kind == Kind::allocate;
    }
    result.push_back(content);
  }
  return result;
}

// The end of the last step. The program may evaluate, save or shut down afterwards. The last step
// ends as many records after its last work as the step before did after its own (`work_before`),
// and earlier if the host was busy for much longer than there.
std::uint32_t end_of_last(const std::vector<trace::Record>& records, std::uint32_t work_before,
                          std::uint32_t end_before, std::uint32_t work) {
  std::uint64_t usual = 0;
  for (std::uint32_t i = work_before; i < end_before; ++i) usual += host_ns(records[i]);
  constexpr std::uint64_t slack_ns = 100000;  // negligible in a step
  std::uint32_t end = work;
  std::uint64_t busy = 0;
  for (; end < records.size() && end - work < end_before - work_before; ++end) {
    busy += host_ns(records[end]);
    if (busy > 2 * usual + slack_ns) break;
  }
  return end;
}

class Finder {
 public:
  Finder(job::Job& job, const Options& options) : job_(job), options_(options) {
    for (const job::RankClass& c : job.classes) sequences_.emplace_back(c.recording);
  }

  Status run() {
    using job::StepsFoundBy;
    if (!options_.step_range.empty()) {
      if (!by_range())
        return Error{
            fmt::format("no NVTX range named \"{}\" occurs equally often on every rank; omit the "
                        "name to detect the steps automatically",
                        options_.step_range)};
      return {};
    }
    auto by_optimizer = [&](std::size_t c) {
      return cuts_by_optimizer(sequences_[c], options_.steps);
    };
    auto by_period = [&](std::size_t c) { return cuts_by_period(sequences_[c], options_.steps); };
    if (options_.steps > 0) {
      if (options_.steps == 1) return whole_run(StepsFoundBy::user), Status{};
      if (accept(StepsFoundBy::user, by_optimizer, 1) || accept(StepsFoundBy::user, by_period, 1))
        return {};
      return Error{
          fmt::format("the recording cannot be divided into {} steps; omit the number to detect "
                      "the steps automatically",
                      options_.steps)};
    }
    auto by_backward = [&](std::size_t c) { return cuts_by_backward(sequences_[c]); };
    auto by_annotation = [&](std::size_t c) {
      return cuts_by_annotation(job_.classes[c].recording, sequences_[c]);
    };
    if (accept(StepsFoundBy::annotation, by_annotation, 2)) return {};
    const bool certain = std::all_of(sequences_.begin(), sequences_.end(),
                                     [](const Sequence& s) { return s.certain_updates(); });
    if (!certain && accept(StepsFoundBy::backward, by_backward, 2)) return {};
    if (accept(StepsFoundBy::optimizer, by_optimizer, 2)) return {};
    // One update after training work is one step, even if layers repeat inside it.
    if (accept(StepsFoundBy::optimizer, by_optimizer, 1)) return single(), Status{};
    if (certain && accept(StepsFoundBy::backward, by_backward, 2)) return {};
    if (accept(StepsFoundBy::period, by_period, 2)) return note_inference(), Status{};
    if (accept(StepsFoundBy::annotation, by_annotation, 1)) return single(), Status{};
    whole_run(StepsFoundBy::whole_run);
    job_.notes.push_back(
        "no repeating step was detected: the whole run after initialization counts as one step");
    return {};
  }

 private:
  // A step is the inside of the NVTX range that the user named. The work between two ranges, also
  // on the host, is a segment of its own and is not measured.
  bool by_range() {
    std::size_t steps = 0;
    for (std::size_t c = 0; c < job_.classes.size(); ++c) {
      job::RankClass& rank_class = job_.classes[c];
      const auto ranges = ranges_named(rank_class.recording, options_.step_range);
      if (ranges.empty() || (c > 0 && ranges.size() != steps)) return false;
      steps = ranges.size();
      rank_class.step_begin.clear();
      for (const Range& range : ranges) {
        rank_class.step_begin.push_back(range.begin);
        rank_class.step_begin.push_back(range.end);
      }
    }
    std::vector<std::uint8_t> inside(2 * steps - 1);
    for (std::size_t k = 0; k < inside.size(); ++k) inside[k] = k % 2 == 0;
    job_.found_by = job::StepsFoundBy::user;
    measure(std::move(inside));
    return true;
  }

  // A recording that was cut off may end in the middle of an update. Only the beginning of the next
  // step shows that the last one is whole.
  static void drop_unfinished(job::StepsFoundBy by, const Sequence& sequence, Cuts& cuts) {
    const bool ends_in_update =
        by == job::StepsFoundBy::optimizer || by == job::StepsFoundBy::backward;
    if (!ends_in_update || cuts.empty() || sequence.heavy_between(0, sequence.size()) == 0) return;
    if (sequence.heavy_between(cuts.back(), sequence.size()) == 0) cuts.pop_back();
  }

  // The same method must divide every class into the same number of steps, at least `least`.
  bool accept(job::StepsFoundBy by, const std::function<Cuts(std::size_t)>& find,
              std::size_t least) {
    std::vector<Cuts> cuts;
    std::size_t fewest = SIZE_MAX, most = 0;
    for (std::size_t c = 0; c < job_.classes.size(); ++c) {
      cuts.push_back(find(c));
      if (job_.truncated && options_.steps == 0 && !options_.whole_steps)
        drop_unfinished(by, sequences_[c], cuts.back());
      fewest = std::min(fewest, cuts.back().size());
      most = std::max(most, cuts.back().size());
    }
    if (fewest < least + 1) return false;
    if (fewest != most) {
      if (!job_.truncated) return false;
      for (Cuts& c : cuts) c.resize(fewest);  // a rank that failed has fewer steps
    }
    std::vector<std::uint8_t> steady(fewest - 1, 1);
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      Regularity regular = regularity(sequences_[c], cuts[c]);
      if (!regular.steady.empty())
        for (std::size_t k = 0; k < steady.size(); ++k) steady[k] &= regular.steady[k];
      const auto& records = job_.classes[c].recording.records;
      auto& begin = job_.classes[c].step_begin;
      begin.clear();
      // A step begins with its first work. Synchronization, annotations and host work after the
      // last work of a step belong to that step.
      const Sequence& sequence = sequences_[c];
      auto after_work = [&](std::size_t cut) { return cut > 0 ? sequence.record(cut - 1) + 1 : 0; };
      for (std::size_t cut : cuts[c])
        begin.push_back(cut < sequence.size() ? sequence.record(cut)
                                              : static_cast<std::uint32_t>(records.size()));
      const std::size_t last = cuts[c].size() - 1;
      begin.back() =
          std::min(begin.back(), last > 1 ? end_of_last(records, after_work(cuts[c][last - 1]),
                                                        begin[last - 1], after_work(cuts[c][last]))
                                          : after_work(cuts[c][last]));
    }
    job_.found_by = by;
    note_others(cuts[0], steady);
    measure(std::move(steady));
    return true;
  }

  // Adds a note about steps that are not measured because their training work differs. The first
  // step (initialization) and steps that only log a value are not mentioned.
  void note_others(const Cuts& cuts, const std::vector<std::uint8_t>& steady) {
    const auto typical = static_cast<std::size_t>(
        std::find(steady.begin(), steady.end(), std::uint8_t{1}) - steady.begin());
    if (typical == steady.size()) return;
    const Sequence& sequence = sequences_[0];
    auto work = [&](std::size_t k) { return sequence.heavy_between(cuts[k], cuts[k + 1]); };
    auto code = [&](std::size_t k) { return sequence.shape(cuts[k], cuts[k + 1]); };
    std::size_t others = 0;
    for (std::size_t k = 1; k < steady.size(); ++k)
      others += steady[k] == 0 && (work(k) != work(typical) || code(k) == code(typical));
    if (others > 0)
      job_.notes.push_back(fmt::format(
          "{} of {} steps differ from most (an evaluation before them, another batch size) and are "
          "not measured",
          others, steady.size()));
  }

  // Selects the steady steps. The first steps are excluded while they initialize or their host is
  // slow.
  void measure(std::vector<std::uint8_t> steady) {
    const std::size_t steps = steady.size();
    auto count = [&] { return std::count(steady.begin(), steady.end(), 1); };
    if (count() == 0) std::fill(steady.begin(), steady.end(), 1);
    std::vector<std::uint8_t> sets_up(steps), slow(steps);
    for (const job::RankClass& c : job_.classes) {
      std::vector<Content> content = contents(c);
      std::vector<double> times;
      for (const Content& k : content) times.push_back(k.host_ns);
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      double median = times[times.size() / 2];
      for (std::size_t k = 0; k < steps; ++k) {
        sets_up[k] |= content[k].sets_up;
        slow[k] |= content[k].host_ns > 1.5 * median;
      }
    }
    auto leave_out = [&](auto&& condition) {
      std::vector<std::uint8_t> fewer = steady;
      for (std::size_t k = 0; k < steps && condition(k); ++k) fewer[k] = 0;
      if (std::count(fewer.begin(), fewer.end(), 1) > 0) steady = std::move(fewer);
    };
    const auto first =
        static_cast<std::size_t>(std::find(steady.begin(), steady.end(), 1) - steady.begin());
    const std::vector<std::uint8_t> candidates = steady;
    leave_out([&](std::size_t k) { return k <= first; });
    leave_out([&](std::size_t k) {
      return k <= first || candidates[k] == 0 || sets_up[k] != 0 || slow[k] != 0;
    });
    job_.measured = std::move(steady);
    job_.warmup_steps = static_cast<std::uint32_t>(
        std::find(job_.measured.begin(), job_.measured.end(), 1) - job_.measured.begin());
  }

  void note_inference() {
    if (std::any_of(sequences_.begin(), sequences_.end(), has_training)) return;
    job_.notes.push_back(
        "no backward pass and no optimizer update was recorded: a step here is one repetition of "
        "forward work (inference or an evaluation)");
  }

  // The only step is the first one. In some programs it is longer by minutes than all others.
  void single() {
    for (std::size_t c = 0; c < sequences_.size(); ++c) {
      const auto& step = job_.classes[c].step_begin;
      for (const Stretch& tuning : benchmarks(sequences_[c]))
        if (sequences_[c].record(tuning.begin) >= step.front() &&
            sequences_[c].record(tuning.begin) < step.back()) {
          job_.unusable_step =
              "the only step that was recorded is the first one, in which the program compiled "
              "kernels and timed them to choose among them";
          return;
        }
    }
    job_.notes.push_back(
        "the run has only one step, which may include warm-up; two or more steps give a more "
        "reliable answer");
  }

  void whole_run(job::StepsFoundBy by) {
    for (std::size_t c = 0; c < job_.classes.size(); ++c) {
      job::RankClass& k = job_.classes[c];
      const Sequence& s = sequences_[c];
      std::uint32_t begin = s.size() > 0 ? s.record(s.first_heavy()) : 0;
      auto end = s.size() > 0 ? s.record(s.size() - 1) + 1
                              : static_cast<std::uint32_t>(k.recording.records.size());
      k.step_begin = {begin, end};
    }
    job_.found_by = by;
    job_.measured = {1};
    job_.warmup_steps = 0;
  }

  job::Job& job_;
  const Options& options_;
  std::vector<Sequence> sequences_;
};

}  // namespace

Status find_steps(job::Job& job, const Options& options) { return Finder(job, options).run(); }

}  // namespace maya::collate
