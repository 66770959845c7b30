#include "simulate/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace maya::simulate {
namespace {

// The first measured step, and the step after the last measured one.
std::pair<std::size_t, std::size_t> measured_range(const job::Job& job) {
  const auto first = std::find(job.measured.begin(), job.measured.end(), 1);
  const auto last = std::find(job.measured.rbegin(), job.measured.rend(), 1);
  if (first == job.measured.end()) return {0, job.measured.size()};
  return {first - job.measured.begin(), job.measured.rend() - last};
}

struct Records {
  std::uint32_t begin{}, end{};
};

Records measured_records(const job::Job& job, const job::RankClass& rank_class) {
  const auto [first, last] = measured_range(job);
  if (last >= rank_class.step_begin.size()) return {0, UINT32_MAX};
  return {rank_class.step_begin[first], rank_class.step_begin[last]};
}

double measured_works(const job::Job& job, const Plan& plan, std::size_t c) {
  const Records range = measured_records(job, job.classes[c]);
  const auto all = static_cast<double>(job.classes[c].recording.records.size());
  const double share = all > 0 ? std::min(1.0, (range.end - range.begin) / all) : 1;
  return share * static_cast<double>(plan.classes[c].works);
}

}  // namespace

std::string Shown::note() const {
  if (all()) return {};
  return fmt::format(
      "timeline.pftrace and report.html show the measured steps of {} of {} groups of ranks; "
      "`maya trace` writes everything",
      std::count(classes.begin(), classes.end(), 1), classes.size());
}

Shown choose_shown(const job::Job& job, const Plan& plan, const Options& options) {
  Shown shown;
  shown.classes.assign(plan.classes.size(), options.keep_spans ? 1 : 0);
  double works = 0, measured = 0;
  for (std::size_t c = 0; c < plan.classes.size(); ++c) {
    works += static_cast<double>(plan.classes[c].works);
    measured += measured_works(job, plan, c);
  }
  const auto most = static_cast<double>(options.most_spans);
  if (!options.keep_spans || options.most_spans == 0 || works <= most) return shown;
  shown.measured_steps_only = true;
  if (measured <= most) return shown;

  std::vector<std::size_t> order(plan.classes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return job.classes[a].representative < job.classes[b].representative;
  });
  const auto affordable = static_cast<std::size_t>(most / measured * order.size());
  const std::size_t count = std::min(order.size(), std::max<std::size_t>(2, affordable));
  std::fill(shown.classes.begin(), shown.classes.end(), 0);
  if (count == 1) return shown.classes[order[0]] = 1, shown;
  for (std::size_t i = 0; i < count; ++i)
    shown.classes[order[i * (order.size() - 1) / (count - 1)]] = 1;
  return shown;
}

void keep_measured_steps(const job::Job& job, Timeline& timeline) {
  std::vector<Records> ranges;
  for (const job::RankClass& rank_class : job.classes)
    ranges.push_back(measured_records(job, rank_class));
  auto outside = [&](const auto& span) {
    const Records& range = ranges[span.rank_class];
    return span.record < range.begin || span.record >= range.end;
  };
  std::erase_if(timeline.spans, outside);
  std::erase_if(timeline.host_spans, outside);
}

}  // namespace maya::simulate
