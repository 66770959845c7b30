#include "report/usage.h"

#include <algorithm>
#include <map>
#include <utility>

namespace maya::report {

std::vector<Range> measured_steps(const job::Job& job, const job::RankClass& rank_class) {
  const auto size = static_cast<std::uint32_t>(rank_class.recording.records.size());
  const auto& begin = rank_class.step_begin;
  std::vector<Range> steps;
  for (std::size_t k = 0; k + 1 < begin.size() && k < job.measured.size(); ++k)
    if (job.measured[k]) steps.push_back({std::min(begin[k], size), std::min(begin[k + 1], size)});
  if (steps.empty()) steps.push_back({0, size});
  return steps;
}

double measured_count(const job::Job& job) {
  return std::max<double>(
      1, static_cast<double>(std::count(job.measured.begin(), job.measured.end(), 1)));
}

std::vector<std::int32_t> members(const job::Job& job, const trace::Recording& recording,
                                  std::uint32_t communicator) {
  if (communicator >= recording.communicators.size()) return {};
  const std::uint64_t id = recording.communicators[communicator].id;
  for (const job::Communicator& candidate : job.communicators)
    if (candidate.id == id) return candidate.ranks;
  return {};
}

bool is_communication(const Work& work) {
  return std::holds_alternative<Collective>(work) || std::holds_alternative<PointToPoint>(work);
}

bool is_matrix_work(const Work& work) {
  if (const auto* triton = std::get_if<TritonKernel>(&work)) return triton->tensor_flops > 0;
  return std::holds_alternative<Gemm>(work) || std::holds_alternative<Convolution>(work) ||
         std::holds_alternative<Attention>(work) || std::holds_alternative<Rnn>(work) ||
         std::holds_alternative<Solver>(work) || std::holds_alternative<Sparse>(work);
}

namespace {

void estimate_communication(const job::Job& job, const trace::Recording& recording,
                            const network::Network& network, OpUse& use) {
  const Work& work = recording.ops[use.op].work;
  std::vector<std::int32_t> ranks = members(job, recording, use.communicator);
  if (ranks.empty()) return;
  network::CollectiveTime time;
  if (const auto* collective = std::get_if<Collective>(&work)) {
    time = network.collective(*collective, ranks);
  } else {
    const auto& message = std::get<PointToPoint>(work);
    const std::int32_t self = recording.communicators[use.communicator].rank;
    const auto size = static_cast<std::int32_t>(ranks.size());
    if (message.peer < 0 || message.peer >= size || self < 0 || self >= size) return;
    network::Message one{ranks[self], ranks[message.peer], message.bytes};
    if (!message.send) std::swap(one.from, one.to);
    time = network.messages(std::span(&one, 1));
  }
  use.ns = time.ns;
  use.origin = time.origin;
}

}  // namespace

std::vector<OpUse> uses(const job::Job& job, const Models& models) {
  std::vector<OpUse> result;
  for (std::uint32_t c = 0; c < job.classes.size(); ++c) {
    const trace::Recording& recording = job.classes[c].recording;
    std::vector<std::uint64_t> counts(recording.ops.size());
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> communication;
    auto count = [&](const trace::Record& record, std::uint32_t) {
      if (record.value >= recording.ops.size()) return;
      if (is_communication(recording.ops[record.value].work))
        ++communication[{record.value, record.aux}];
      else
        ++counts[record.value];
    };
    for (const Range& step : measured_steps(job, job.classes[c]))
      each_work(recording, step.begin, step.end, count);
    for (std::uint32_t op = 0; op < counts.size(); ++op) {
      if (counts[op] == 0) continue;
      const estimate::Estimate estimate = models.estimator(recording.ops[op]);
      result.push_back({c, op, 0, counts[op], estimate.ns, estimate.origin});
    }
    for (const auto& [key, count] : communication) {
      OpUse use{c, key.first, key.second, count, 0, estimate::Origin::unknown};
      estimate_communication(job, recording, models.network, use);
      result.push_back(use);
    }
  }
  return result;
}

}  // namespace maya::report
