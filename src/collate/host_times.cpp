#include "collate/host_times.h"

#include <algorithm>
#include <map>

namespace maya::collate {
namespace {

using trace::Kind;
using trace::Record;

// What a thread's host did up to a call that puts work on the device: the records in between (gaps,
// allocations, events) and the host time of all. Allocations come and go between like steps; work
// does not.
struct Stretch {
  std::uint32_t begin{}, end{};  // in ThreadStretches::records; the last is the call
  std::uint64_t ns{};
};

struct ThreadStretches {
  std::vector<std::uint32_t> records;
  std::vector<Stretch> stretches;
  std::uint64_t open_ns{};
  std::uint32_t open{};
};

std::uint64_t host_ns(const Record& r) {
  return r.host_ns + (r.kind == Kind::host_gap ? std::uint64_t{r.value} * 1000 : 0);
}

bool puts_work(Kind kind) {
  return (kind >= Kind::launch && kind <= Kind::point_to_point) || kind == Kind::graph_launch ||
         kind == Kind::stream_synchronize || kind == Kind::device_synchronize;
}

std::map<std::uint16_t, ThreadStretches> stretches_of(const std::vector<Record>& records,
                                                      std::uint32_t begin, std::uint32_t end) {
  std::map<std::uint16_t, ThreadStretches> threads;
  for (std::uint32_t i = begin; i < end; ++i) {
    const Record& r = records[i];
    if (r.kind == Kind::wide || r.kind == Kind::none) continue;
    ThreadStretches& t = threads[r.thread];
    t.records.push_back(i);
    t.open_ns += host_ns(r);
    if (!puts_work(r.kind)) continue;
    const auto to = static_cast<std::uint32_t>(t.records.size());
    t.stretches.push_back({t.open, to, t.open_ns});
    t.open = to, t.open_ns = 0;
  }
  return threads;
}

bool alike(const std::vector<Record>& records, const ThreadStretches& a, const ThreadStretches& b) {
  return std::equal(a.stretches.begin(), a.stretches.end(), b.stretches.begin(), b.stretches.end(),
                    [&](const Stretch& x, const Stretch& y) {
                      return records[a.records[x.end - 1]].kind ==
                             records[b.records[y.end - 1]].kind;
                    });
}

// Shrinks the host time of a stretch to `ns`, each record by the same share; what rounding leaves
// goes to the call.
void shrink(std::vector<Record>& records, const ThreadStretches& thread, const Stretch& stretch,
            std::uint64_t ns) {
  if (stretch.ns <= ns) return;
  const double share = static_cast<double>(ns) / static_cast<double>(stretch.ns);
  std::uint64_t given = 0;
  for (std::uint32_t i = stretch.begin; i + 1 < stretch.end; ++i) {
    Record& r = records[thread.records[i]];
    auto scaled = [&](std::uint32_t value) { return static_cast<std::uint32_t>(value * share); };
    r.host_ns = scaled(r.host_ns);
    if (r.kind == Kind::host_gap) r.value = scaled(r.value);
    given += host_ns(r);
  }
  records[thread.records[stretch.end - 1]].host_ns =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(ns - std::min(ns, given), UINT32_MAX));
}

}  // namespace

void settle_host_times(job::Job& job) {
  for (job::RankClass& rank_class : job.classes) {
    auto& records = rank_class.recording.records;
    std::vector<std::map<std::uint16_t, ThreadStretches>> steps;
    for (std::size_t k = 0; k < job.measured.size(); ++k)
      if (job.measured[k] != 0)
        steps.push_back(
            stretches_of(records, rank_class.step_begin[k], rank_class.step_begin[k + 1]));
    if (steps.size() < 2) continue;
    std::vector<std::uint64_t> times(steps.size());
    for (const auto& [thread, first] : steps[0]) {
      bool same = true;
      for (auto& step : steps) same = same && alike(records, first, step[thread]);
      if (!same) continue;
      for (std::size_t i = 0; i < first.stretches.size(); ++i) {
        for (std::size_t k = 0; k < steps.size(); ++k) times[k] = steps[k][thread].stretches[i].ns;
        const auto at = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 8);
        std::nth_element(times.begin(), at, times.end());
        for (auto& step : steps) shrink(records, step[thread], step[thread].stretches[i], *at);
      }
    }
  }
}

}  // namespace maya::collate
