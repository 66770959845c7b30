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

// The last steady step: its records, or nothing if no step was detected.
std::span<const trace::Record> steady_step(const job::Job& job) {
  const job::RankClass& rank = job.classes[0];
  for (std::size_t s = job.measured.size(); s-- > 0;)
    if (job.measured[s] != 0 && s + 1 < rank.step_begin.size())
      return std::span(rank.recording.records)
          .subspan(rank.step_begin[s], rank.step_begin[s + 1] - rank.step_begin[s]);
  return {};
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

}  // namespace

std::optional<std::string> difference(trace::Recording a, trace::Recording b) {
  constexpr double negligible = 0.01;
  const job::Job first = steps_of(std::move(a)), second = steps_of(std::move(b));
  const auto step = steady_step(first), other_step = steady_step(second);
  if (step.empty() || other_step.empty()) return std::nullopt;
  const Counts ours = counts_of(first.classes[0].recording, step),
               theirs = counts_of(second.classes[0].recording, other_step);
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

}  // namespace maya::collate
