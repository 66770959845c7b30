#include "collate/host_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include "collate/hash.h"

namespace maya::collate {
namespace {

using trace::Kind;
using trace::Record;

// The records of a thread from one call that puts work on the device to the next (host gaps,
// allocations, events), and their total host time. Allocations may differ between steady steps; the
// calls do not.
struct CallInterval {
  std::uint32_t begin{}, end{};  // indices into Thread::records; the last record is the call
  Kind call{};
  std::uint64_t ns{};
  std::uint64_t around{};  // hash of this call and the calls just before and after it
};

struct Thread {
  std::vector<std::uint32_t> records;
  std::vector<CallInterval> intervals;
  std::uint64_t open_ns{};
  std::uint32_t open{};
};

bool puts_work(Kind kind) {
  return (kind >= Kind::launch && kind <= Kind::point_to_point) || kind == Kind::graph_launch ||
         kind == Kind::stream_synchronize || kind == Kind::device_synchronize;
}

// The surrounding calls identify a place in the program. Different layers of a model have the same
// surroundings, which is intended.
void look_around(std::vector<CallInterval>& intervals, const std::vector<std::uint64_t>& calls) {
  constexpr std::size_t before = 8, after = 2;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    std::uint64_t hash = 0;
    for (std::size_t j = i - std::min(i, before); j <= std::min(i + after, calls.size() - 1); ++j)
      hash = mix(hash, calls[j]);
    intervals[i].around = hash;
  }
}

// In order of first appearance, because thread ids differ between ranks.
std::vector<Thread> threads_of(const trace::Recording& recording) {
  const std::vector<Record>& records = recording.records;
  std::vector<std::uint64_t> op_hash;
  for (const Op& op : recording.ops) op_hash.push_back(hash_op(op));
  std::vector<std::vector<std::uint64_t>> calls;  // per thread
  std::vector<Thread> threads;
  std::map<std::uint16_t, std::size_t> number;
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    const Record& r = records[i];
    if (r.kind == Kind::wide || r.kind == Kind::none) continue;
    const auto [at, fresh] = number.try_emplace(r.thread, threads.size());
    if (fresh) threads.emplace_back(), calls.emplace_back();
    Thread& t = threads[at->second];
    t.records.push_back(i);
    t.open_ns += host_ns(r);
    if (!puts_work(r.kind)) continue;
    const auto to = static_cast<std::uint32_t>(t.records.size());
    t.intervals.push_back({t.open, to, r.kind, t.open_ns});
    t.open = to, t.open_ns = 0;
    const bool has_op = r.kind >= Kind::launch && r.kind <= Kind::point_to_point;
    calls[at->second].push_back(mix(static_cast<std::uint64_t>(r.kind),
                                    has_op && r.value < op_hash.size() ? op_hash[r.value] : 0));
  }
  for (std::size_t t = 0; t < threads.size(); ++t) look_around(threads[t].intervals, calls[t]);
  return threads;
}

bool same_calls(std::span<const CallInterval> a, std::span<const CallInterval> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const CallInterval& x, const CallInterval& y) { return x.call == y.call; });
}

std::uint64_t hash_of_calls(std::span<const CallInterval> intervals) {
  std::uint64_t hash = intervals.size();
  for (const CallInterval& s : intervals) hash = mix(hash, static_cast<std::uint64_t>(s.call));
  return hash;
}

// The intervals of one thread in a step.
std::span<const CallInterval> in_step(const job::RankClass& rank_class, const Thread& thread,
                                      std::size_t step) {
  auto first_from = [&](std::uint32_t record) {
    return std::partition_point(
        thread.intervals.begin(), thread.intervals.end(),
        [&](const CallInterval& s) { return thread.records[s.end - 1] < record; });
  };
  return {first_from(rank_class.step_begin[step]), first_from(rank_class.step_begin[step + 1])};
}

// The calls that a thread makes in more than half of the steps, by majority vote; null: there are
// none.
const std::span<const CallInterval>* usual_calls(
    const std::vector<std::span<const CallInterval>>& steps) {
  const std::span<const CallInterval>* usual = nullptr;
  std::size_t votes = 0;
  for (const auto& step : steps) {
    if (votes == 0) usual = &step;
    votes = same_calls(*usual, step) ? votes + 1 : votes - 1;
  }
  if (usual == nullptr) return nullptr;
  const auto alike = std::count_if(steps.begin(), steps.end(),
                                   [&](const auto& step) { return same_calls(*usual, step); });
  return static_cast<std::size_t>(alike) * 2 > steps.size() ? usual : nullptr;
}

// The intervals of one thread in each steady step with the usual calls, or nothing if the steps
// have different calls.
std::vector<std::span<const CallInterval>> steady_steps(const job::Job& job,
                                                        const job::RankClass& rank_class,
                                                        const Thread& thread) {
  std::vector<std::span<const CallInterval>> steps;
  for (std::size_t k = 0; k < job.measured.size(); ++k)
    if (job.measured[k] != 0) steps.push_back(in_step(rank_class, thread, k));
  const auto* usual = usual_calls(steps);
  if (usual == nullptr) return {};
  const std::span<const CallInterval> calls = *usual;
  std::erase_if(steps, [&](const auto& step) { return !same_calls(calls, step); });
  return steps;
}

// A step in which the host made other calls than usual, and worked for much longer, did something
// besides training: it exported a profile, wrote a checkpoint, evaluated on the host.
void leave_out_other_work(job::Job& job, const std::vector<const std::vector<Thread>*>& threads) {
  constexpr double longer = 1.5;
  constexpr std::uint64_t least_ns = 5'000'000;
  std::vector<std::uint8_t> other(job.measured.size());
  const auto measured =
      static_cast<std::size_t>(std::count(job.measured.begin(), job.measured.end(), 1));
  auto host_time = [](std::span<const CallInterval> calls) {
    std::uint64_t ns = 0;
    for (const CallInterval& interval : calls) ns += interval.ns;
    return ns;
  };
  for (std::size_t c = 0; c < job.classes.size(); ++c)
    for (const Thread& thread : *threads[c]) {
      if (thread.intervals.size() < measured) continue;
      const auto usual = steady_steps(job, job.classes[c], thread);
      if (usual.empty() || usual.front().empty()) continue;
      std::vector<std::uint64_t> times;
      for (const auto& step : usual) times.push_back(host_time(step));
      const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
      std::nth_element(times.begin(), middle, times.end());
      for (std::size_t k = 0; k < job.measured.size(); ++k) {
        if (job.measured[k] == 0) continue;
        const auto calls = in_step(job.classes[c], thread, k);
        const std::uint64_t ns = host_time(calls);
        if (same_calls(usual.front(), calls) || ns <= *middle + least_ns ||
            static_cast<double>(ns) <= longer * static_cast<double>(*middle))
          continue;
        other[k] = 1;
        // Before the first call of a step: the step before it lasts until then.
        if (k > 0 && job.measured[k - 1] != 0 && !calls.empty() &&
            calls.front().ns > usual.front().front().ns + least_ns)
          other[k - 1] = 1;
      }
    }
  const auto count = std::count(other.begin(), other.end(), 1);
  if (count == 0 || static_cast<std::size_t>(count) >= measured) return;
  for (std::size_t k = 0; k < other.size(); ++k)
    if (other[k] != 0) job.measured[k] = 0;
  job.warmup_steps = static_cast<std::uint32_t>(
      std::find(job.measured.begin(), job.measured.end(), 1) - job.measured.begin());
  job.notes.push_back(fmt::format(
      "in {} of {} steps the host did something else for a while (a profile, a checkpoint, an "
      "evaluation): {} not measured",
      count, other.size(), count == 1 ? "it is" : "they are"));
}

// Makes the host time of an interval `ns`, each record's by the same factor. The rounding error is
// added to the call.
void settle(std::vector<Record>& records, const Thread& thread, const CallInterval& interval,
            std::uint64_t ns) {
  const double share =
      static_cast<double>(ns) / static_cast<double>(std::max<std::uint64_t>(interval.ns, 1));
  std::uint64_t given = 0;
  for (std::uint32_t i = interval.begin; i + 1 < interval.end; ++i) {
    Record& r = records[thread.records[i]];
    auto scaled = [&](std::uint32_t value) {
      return static_cast<std::uint32_t>(std::min(value * share, double{UINT32_MAX}));
    };
    r.host_ns = scaled(r.host_ns);
    if (r.kind == Kind::host_gap) r.value = scaled(r.value);
    given += host_ns(r);
  }
  records[thread.records[interval.end - 1]].host_ns =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(ns - std::min(ns, given), UINT32_MAX));
}

// Reorders `times`.
std::uint64_t at(std::vector<std::uint64_t>& times, std::size_t place) {
  const auto found = times.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(times.begin(), found, times.end());
  return *found;
}

// Which host time counts, of those that the same call took.
class Counts {
 public:
  explicit Counts(bool settled) : settled_(settled) {}
  // What becomes of one of them: disturbances only ever add.
  std::uint64_t changed(std::uint64_t from, std::uint64_t to) const {
    return settled_ ? to : std::min(from, to);
  }
  // Reorders `times`.
  std::uint64_t operator()(std::vector<std::uint64_t>& times) const {
    return settled_ ? mean_of_usual(times) : lower_eighth(times);
  }

 private:
  static std::uint64_t lower_eighth(std::vector<std::uint64_t>& times) {
    return at(times, (times.size() - 1) / 8);
  }
  // The program saw the sum of these times step by step, so their mean has to come out, and a
  // median would not do: they are skewed. A long stretch that the clock left as it was is not part
  // of it (session/settled_time.h).
  static std::uint64_t mean_of_usual(std::vector<std::uint64_t>& times) {
    constexpr std::uint64_t long_ns = 5'000'000;
    const std::uint64_t longest = std::max(long_ns, 2 * at(times, (times.size() - 1) / 2));
    std::uint64_t sum = 0, count = 0;
    for (const std::uint64_t ns : times)
      if (ns <= longest) sum += ns, ++count;
    return (sum + count / 2) / count;
  }

  bool settled_;
};

// Steady steps with the same calls, of one thread of any rank.
struct Alike {
  struct Owner {
    std::vector<Record>* records;
    const Thread* thread;
    std::vector<std::span<const CallInterval>> steps;
  };
  std::vector<Owner> owners;                // whose host times are corrected
  std::vector<const CallInterval*> begins;  // of every step, of ranks folded away too
};
using Groups = std::map<std::pair<std::size_t, std::uint64_t>, Alike>;  // by thread and its calls

}  // namespace

std::uint64_t host_ns(const Record& r) {
  if (r.kind == Kind::wide) return 0;
  return r.host_ns + (r.kind == Kind::host_gap ? std::uint64_t{r.value} * 1000 : 0);
}

void settle_host_times(job::Job& job, const std::vector<Twins>& twins, bool settled) {
  const Counts counting(settled);
  // All recorded times, before any of them is changed.
  std::map<const trace::Recording*, std::vector<Thread>> recorded;
  auto remember = [&](const trace::Recording& recording) {
    if (!recorded.contains(&recording)) recorded.emplace(&recording, threads_of(recording));
  };
  for (std::size_t c = 0; c < job.classes.size(); ++c) {
    remember(job.classes[c].recording);
    for (const trace::Recording* twin : twins[c]) remember(*twin);
  }
  std::vector<const std::vector<Thread>*> of_classes;
  for (const job::RankClass& one : job.classes) of_classes.push_back(&recorded.at(&one.recording));
  leave_out_other_work(job, of_classes);
  Groups groups;
  // A thread with fewer calls than steps has no calls in some of them and can be skipped. Without
  // this the search would take threads × steps.
  const auto steps_measured = static_cast<std::size_t>(std::count_if(
      job.measured.begin(), job.measured.end(), [](auto measured) { return measured != 0; }));
  for (std::size_t c = 0; c < job.classes.size(); ++c) {
    const std::vector<Thread>& own = recorded.at(&job.classes[c].recording);
    for (std::size_t t = 0; t < own.size(); ++t) {
      if (own[t].intervals.size() < steps_measured) continue;
      auto steps = steady_steps(job, job.classes[c], own[t]);
      if (steps.empty() || steps.front().empty()) continue;
      Alike& group = groups[{t, hash_of_calls(steps.front())}];
      for (const auto& step : steps) group.begins.push_back(step.data());
      for (const trace::Recording* twin : twins[c]) {
        const std::vector<Thread>& member = recorded.at(twin);
        if (t >= member.size() || !same_calls(own[t].intervals, member[t].intervals)) continue;
        for (const auto& step : steps)
          group.begins.push_back(member[t].intervals.data() +
                                 (step.data() - own[t].intervals.data()));
      }
      group.owners.push_back({&job.classes[c].recording.records, &own[t], std::move(steps)});
    }
  }
  // If only one step was recorded, layers and micro-batches repeat within it. Calls with the same
  // surroundings are then compared with each other.
  std::map<std::size_t, std::unordered_map<std::uint64_t, std::vector<std::uint64_t>>> places;
  auto each_of_one_step = [&](auto&& visit) {
    for (const auto& [key, group] : groups)
      if (group.begins.size() == 1)
        for (const Alike::Owner& owner : group.owners)
          for (const CallInterval& interval : owner.steps.front())
            visit(key.first, owner, interval);
  };
  each_of_one_step([&](std::size_t thread, const Alike::Owner&, const CallInterval& interval) {
    places[thread][interval.around].push_back(interval.ns);
  });
  // Zero: too few to compare.
  std::map<std::size_t, std::unordered_map<std::uint64_t, std::uint64_t>> counts;
  constexpr std::size_t enough = 8;
  for (auto& [thread, times_of] : places)
    for (auto& [around, times] : times_of)
      counts[thread][around] = times.size() >= enough ? counting(times) : 0;
  each_of_one_step(
      [&](std::size_t thread, const Alike::Owner& owner, const CallInterval& interval) {
        if (const std::uint64_t ns = counts[thread][interval.around]; ns != 0)
          settle(*owner.records, *owner.thread, interval, counting.changed(interval.ns, ns));
      });
  double low_sum = 0, median_sum = 0;
  for (const auto& [key, group] : groups) {
    std::vector<std::uint64_t> times(group.begins.size());
    if (times.size() < 2) continue;
    for (std::size_t i = 0; i < group.owners.front().steps.front().size(); ++i) {
      for (std::size_t k = 0; k < times.size(); ++k) times[k] = group.begins[k][i].ns;
      const std::uint64_t ns = counting(times);
      median_sum += static_cast<double>(at(times, (times.size() - 1) / 2));
      low_sum += static_cast<double>(ns);
      for (const Alike::Owner& owner : group.owners)
        for (const auto& step : owner.steps)
          settle(*owner.records, *owner.thread, step[i], counting.changed(step[i].ns, ns));
    }
  }
  if (!settled && low_sum > 0) job.host_spread = median_sum / low_sum;
}

}  // namespace maya::collate
