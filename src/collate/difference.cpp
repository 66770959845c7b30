// Compares the work of two ranks that are taken to do the same.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>
#include <utility>

#include "collate/hash.h"
#include "collate/steps.h"
#include "maya/collate.h"

namespace maya::collate {
namespace {

using Counts = std::unordered_map<std::uint64_t, std::pair<const Op*, double>>;

std::span<const trace::Record> records_of_step(const job::Job& job, std::size_t step) {
  const job::RankClass& rank = job.classes[0];
  return std::span(rank.recording.records)
      .subspan(rank.step_begin[step], rank.step_begin[step + 1] - rank.step_begin[step]);
}

std::size_t complete_steps(const job::Job& job) {
  const std::size_t bounds = job.classes[0].step_begin.size();
  return std::min(job.measured.size(), bounds == 0 ? 0 : bounds - 1);
}

// The last steady step, or nothing if no step was detected.
std::optional<std::size_t> steady_step(const job::Job& job) {
  for (std::size_t s = complete_steps(job); s-- > 0;)
    if (job.measured[s] != 0) return s;
  return std::nullopt;
}

// How often each distinct kernel, collective and message was issued in a step.
Counts counts_of(const trace::Recording& recording, std::span<const trace::Record> step) {
  std::vector<double> times(recording.ops.size());
  auto add = [&](const trace::Record& record) {
    const bool compared = record.kind == trace::Kind::launch ||
                          record.kind == trace::Kind::collective ||
                          record.kind == trace::Kind::point_to_point;
    if (compared && record.value < times.size()) times[record.value] += 1;
  };
  for (const trace::Record& record : step) {
    add(record);
    if (record.kind == trace::Kind::graph_launch && record.value < recording.graphs.size())
      for (const auto& node : recording.graphs[record.value].nodes) add(node.record);
  }
  Counts counts;
  for (std::size_t op = 0; op < times.size(); ++op) {
    if (times[op] == 0) continue;
    auto& [first, count] = counts[hash_op(recording.ops[op])];
    first = &recording.ops[op];
    count += times[op];
  }
  return counts;
}

double amount(const Op& op, bool flops) {
  return std::max(0.0, flops ? maya::flops(op.work) : bytes_moved(op.work));
}

// What is different in the second step, in words; empty if it is negligible.
std::string difference_of(const Counts& ours, const Counts& theirs) {
  constexpr double negligible = 0.01;
  for (const bool flops : {true, false}) {
    double all = 0, other = 0, apart = 0, largest = 0;
    const Op* example = nullptr;
    auto look = [&](const Op& op, double here, double there) {
      all += here * amount(op, flops);
      other += there * amount(op, flops);
      const double only = std::abs(here - there) * amount(op, flops);
      apart += only;
      if (only > largest) largest = only, example = &op;
    };
    for (const auto& [hash, entry] : ours) {
      const auto found = theirs.find(hash);
      look(*entry.first, entry.second, found == theirs.end() ? 0 : found->second.second);
    }
    for (const auto& [hash, entry] : theirs)
      if (!ours.contains(hash)) look(*entry.first, 0, entry.second);
    if (example == nullptr || apart <= negligible * std::max(all, other)) continue;
    const std::string words =
        all > 0 && std::abs(other / all - 1) > negligible / 10
            ? fmt::format("{:.1f} % {} {}", 100 * std::abs(other / all - 1),
                          other > all ? "more" : "less", flops ? "FLOPs" : "memory traffic")
            : fmt::format("the same amount of {} in other operations",
                          flops ? "FLOPs" : "memory traffic");
    return fmt::format("{}, for example in {} ({})", words, kind_name(example->work),
                       example->name);
  }
  return "";
}

}  // namespace

std::optional<std::string> difference(trace::Recording a, trace::Recording b) {
  const job::Job first = steps_of(std::move(a)), second = steps_of(std::move(b));
  const auto step = steady_step(first), other_step = steady_step(second);
  if (!step || !other_step) return std::nullopt;
  auto counts = [](const job::Job& job, std::size_t s) {
    return counts_of(job.classes[0].recording, records_of_step(job, s));
  };
  const Counts theirs = counts(second, *other_step);
  std::string words = difference_of(counts(first, *step), theirs);
  // Rank b may have been stopped so early that what counts as its steady step is one of the first,
  // in which a framework still sets things up (DDP rebuilds its buckets). Rank a did that step too.
  for (std::size_t s = 0; !words.empty() && s < complete_steps(first); ++s)
    if (difference_of(counts(first, s), theirs).empty()) words.clear();
  return words;
}

}  // namespace maya::collate
