#include "report/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "network/table.h"
#include "report/format.h"
#include "report/passes.h"
#include "report/usage.h"

namespace maya::report {
namespace {

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Sorts the intervals and merges those that overlap.
Intervals joined(Intervals all) {
  std::sort(all.begin(), all.end());
  Intervals out;
  for (const auto& [begin, end] : all) {
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.emplace_back(begin, end);
  }
  return out;
}

std::int64_t covered(const Intervals& intervals, std::int64_t begin, std::int64_t end) {
  auto at = std::upper_bound(intervals.begin(), intervals.end(), std::pair(begin, begin),
                             [](const auto& a, const auto& b) { return a.first < b.second; });
  if (at != intervals.begin()) --at;
  std::int64_t sum = 0;
  for (; at != intervals.end() && at->first < end; ++at)
    sum += std::max<std::int64_t>(0, std::min(end, at->second) - std::max(begin, at->first));
  return sum;
}

bool in_measured(const std::vector<Range>& steps, std::uint32_t record) {
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Range& step) { return record >= step.begin && record < step.end; });
}

}  // namespace

std::vector<CommunicatorCost> communicator_costs(const job::Job& job,
                                                 const simulate::Timeline& timeline) {
  const double steps = measured_count(job);
  std::vector<std::vector<Range>> measured;
  std::vector<Intervals> kernels(job.classes.size());
  for (const job::RankClass& one : job.classes) measured.push_back(measured_steps(job, one));
  // The last class to arrive at a call, and when.
  struct Arrival {
    std::int64_t start{};
    std::uint32_t rank_class{};
  };
  std::map<std::int64_t, Arrival> last;
  for (const simulate::Span& span : timeline.spans) {
    if (span.rank_class >= job.classes.size()) continue;
    const auto& ops = job.classes[span.rank_class].recording.ops;
    if (span.op >= ops.size()) continue;
    if (!is_communication(ops[span.op].work)) {
      if (!std::holds_alternative<Copy>(ops[span.op].work))
        kernels[span.rank_class].emplace_back(span.start_ns, span.end_ns);
    } else if (span.collective >= 0) {
      Arrival& arrival =
          last.try_emplace(span.collective, Arrival{span.start_ns, span.rank_class}).first->second;
      if (span.start_ns > arrival.start) arrival = {span.start_ns, span.rank_class};
    }
  }
  for (Intervals& one : kernels) one = joined(std::move(one));

  // Communicators with the same name, size and classes do the same and are added up.
  struct Sum {
    CommunicatorCost cost;
    std::map<std::pair<std::string, std::int64_t>, CallCost> calls;
    std::map<std::pair<std::string, std::int64_t>, double> flowing_ns;
    std::map<std::uint32_t, double> waited_for;  // class → ns
    double members{};
    std::set<std::uint32_t> classes;
    std::set<std::uint64_t> ids;
  };
  std::map<std::pair<std::string, std::size_t>, Sum> sums;
  for (const simulate::Span& span : timeline.spans) {
    if (span.rank_class >= job.classes.size()) continue;
    const job::RankClass& one = job.classes[span.rank_class];
    if (span.op >= one.recording.ops.size()) continue;
    const Work& work = one.recording.ops[span.op].work;
    if (!is_communication(work) || span.communicator >= one.recording.communicators.size() ||
        !in_measured(measured[span.rank_class], span.record))
      continue;
    const trace::Communicator& communicator = one.recording.communicators[span.communicator];
    std::vector<std::int32_t> ranks = members(job, one.recording, span.communicator);
    const std::size_t size =
        ranks.empty() ? static_cast<std::size_t>(communicator.size) : ranks.size();
    Sum& sum = sums[{communicator.name, size}];
    if (sum.cost.size == 0) {
      sum.cost.name = communicator.name;
      sum.cost.size = static_cast<std::int32_t>(size);
      sum.cost.ranks = ranks;
    }
    if (sum.classes.insert(span.rank_class).second)
      sum.members += static_cast<double>(one.ranks.size());
    const auto weight = static_cast<double>(one.ranks.size());
    std::string kind;
    std::int64_t bytes = 0;
    double factor = 1;
    if (const auto* collective = std::get_if<Collective>(&work)) {
      kind = enum_name(collective->kind), bytes = collective->bytes;
      factor = network::bus_factor(collective->kind, static_cast<int>(size));
    } else {
      const auto& message = std::get<PointToPoint>(work);
      kind = message.send ? "send" : "receive", bytes = message.bytes;
    }
    std::int64_t waited = 0;
    if (const auto found = last.find(span.collective); found != last.end()) {
      waited = std::clamp<std::int64_t>(found->second.start - span.start_ns, 0,
                                        span.end_ns - span.start_ns);
      if (waited > 0 && found->second.rank_class != span.rank_class)
        sum.waited_for[found->second.rank_class] += static_cast<double>(waited) * weight;
    }
    const double ns = static_cast<double>(span.end_ns - span.start_ns);
    const double hidden =
        static_cast<double>(covered(kernels[span.rank_class], span.start_ns, span.end_ns));
    CallCost& call = sum.calls[{kind, bytes}];
    call.kind = kind, call.bytes = bytes;
    call.count += weight;
    call.ms += ns * weight;
    call.exposed_ms += (ns - hidden) * weight;
    call.waiting_ms += static_cast<double>(waited) * weight;
    sum.flowing_ns[{kind, bytes}] += (ns - static_cast<double>(waited)) * weight / factor;
  }

  std::vector<CommunicatorCost> costs;
  for (auto& [key, sum] : sums) {
    CommunicatorCost& cost = sum.cost;
    for (auto& [what, call] : sum.calls) {
      const double flowing = sum.flowing_ns[what];
      if (flowing > 0) call.busbw_gbps = static_cast<double>(call.bytes) * call.count / flowing;
      const double scale = sum.members * steps;
      call.count /= scale;
      for (double* ns : {&call.ms, &call.exposed_ms, &call.waiting_ms}) *ns /= scale * 1e6;
      cost.ms += call.ms, cost.exposed_ms += call.exposed_ms, cost.waiting_ms += call.waiting_ms;
      cost.calls.push_back(call);
    }
    std::stable_sort(cost.calls.begin(), cost.calls.end(),
                     [](const auto& a, const auto& b) { return a.ms > b.ms; });
    constexpr std::size_t most_calls = 12;
    if (cost.calls.size() > most_calls) cost.calls.resize(most_calls);
    if (cost.size > 0) cost.alike = std::max(1, static_cast<std::int32_t>(sum.members) / cost.size);
    const auto slowest =
        std::max_element(sum.waited_for.begin(), sum.waited_for.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (slowest != sum.waited_for.end() && cost.waiting_ms > 0.001)
      cost.last = rank_list(job.classes[slowest->first].ranks);
    costs.push_back(std::move(cost));
  }
  std::stable_sort(costs.begin(), costs.end(),
                   [](const auto& a, const auto& b) { return a.ms > b.ms; });
  return costs;
}

std::vector<StageSchedule> pipeline_schedule(const job::Job& job,
                                             const simulate::Timeline& timeline) {
  std::vector<StageSchedule> stages;
  const auto shown = std::find_if(timeline.steps.begin(), timeline.steps.end(),
                                  [](const simulate::Step& step) { return step.measured; });
  if (shown == timeline.steps.end()) return stages;
  std::vector<std::uint32_t> classes;
  const std::vector<bool> is_stage = stages_of_pipelines(job);
  for (std::uint32_t c = 0; c < job.classes.size(); ++c)
    if (is_stage[c]) classes.push_back(c);
  if (classes.size() < 2) return stages;
  std::map<std::uint32_t, std::vector<const simulate::Span*>> spans;
  for (const simulate::Span& span : timeline.spans)
    if (span.start_ns >= shown->start_ns && span.start_ns < shown->end_ns)
      spans[span.rank_class].push_back(&span);
  for (const std::uint32_t c : classes) {
    const job::RankClass& one = job.classes[c];
    const trace::Recording& recording = one.recording;
    const Passes passes(job, one);
    // A message ends a micro-batch: work before and after a message belongs to different ones.
    std::vector<std::uint32_t> messages;
    for (std::uint32_t i = 0; i < recording.records.size(); ++i)
      if (recording.records[i].kind == trace::Kind::point_to_point) messages.push_back(i);
    StageSchedule stage;
    stage.ranks = one.ranks;
    std::ptrdiff_t batch = -1;
    double busy = 0;
    for (const simulate::Span* span : spans[c]) {
      if (span->op >= recording.ops.size()) continue;
      const Op& op = recording.ops[span->op];
      if (is_communication(op.work) || std::holds_alternative<Copy>(op.work)) continue;
      const std::ptrdiff_t of =
          std::lower_bound(messages.begin(), messages.end(), span->record) - messages.begin();
      const char pass = std::holds_alternative<OptimizerStep>(op.work) ? 'u'
                        : passes.backward(span->record, op)            ? 'b'
                                                                       : 'f';
      const double start = static_cast<double>(span->start_ns - shown->start_ns) / 1000;
      const double end = static_cast<double>(span->end_ns - shown->start_ns) / 1000;
      busy += end - start;
      if (!stage.pieces.empty() && of == batch && stage.pieces.back().pass == pass)
        stage.pieces.back().us =
            std::max(stage.pieces.back().us, end - stage.pieces.back().start_us);
      else
        stage.pieces.push_back({start, end - start, pass});
      batch = of;
    }
    stage.busy = std::min(1.0, busy * 1000 / static_cast<double>(shown->end_ns - shown->start_ns));
    constexpr std::size_t most_pieces = 2000;
    if (stage.pieces.size() > most_pieces) stage.pieces.resize(most_pieces);
    stages.push_back(std::move(stage));
  }
  std::sort(stages.begin(), stages.end(),
            [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  return stages;
}

}  // namespace maya::report
