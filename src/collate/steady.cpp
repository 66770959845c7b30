#include <algorithm>
#include <functional>
#include <utility>

#include "collate/sequence.h"
#include "collate/steps.h"
#include "maya/collate.h"

namespace maya::collate {

job::Job steps_of(trace::Recording recording) {
  job::Job job;
  job.truncated = true;
  job.classes.resize(1);
  job.classes[0].recording = std::move(recording);
  if (!find_steps(job, {}) || job.found_by == job::StepsFoundBy::whole_run) {
    job.classes[0].step_begin.clear();
    job.measured.clear();
  }
  return job;
}

namespace {

// Whether a CPU optimizer updates the weights: every measured step copies gradients to the host and
// weights back. A micro-batch before such an update copies no weights.
bool updates_on_host(const job::Job& job) {
  constexpr std::int64_t gradients = 1 << 20, smaller_weights = 4;
  const job::RankClass& rank = job.classes[0];
  const trace::Recording& recording = rank.recording;
  bool any = false;
  for (std::size_t s = 0; s < job.measured.size() && s + 1 < rank.step_begin.size(); ++s) {
    if (job.measured[s] == 0) continue;
    any = true;
    std::int64_t from_device = 0, to_device = 0;
    for (std::uint32_t i = rank.step_begin[s]; i < rank.step_begin[s + 1]; ++i) {
      const trace::Record& record = recording.records[i];
      if (record.kind != trace::Kind::copy || record.value >= recording.ops.size()) continue;
      const auto* copy = std::get_if<Copy>(&recording.ops[record.value].work);
      if (copy == nullptr) continue;
      if (copy->direction == CopyDirection::device_to_host) from_device += copy->bytes;
      if (copy->direction == CopyDirection::host_to_device) to_device += copy->bytes;
    }
    if (from_device < gradients || to_device * smaller_weights < from_device) return false;
  }
  return any;
}

bool by_updates(const job::Job& job) {
  if (job.found_by == job::StepsFoundBy::period) return false;
  return job.found_by != job::StepsFoundBy::backward || updates_on_host(job);
}

}  // namespace

SteadySteps steady_steps(trace::Recording recording) {
  const job::Job job = steps_of(std::move(recording));
  const Sequence sequence(job.classes[0].recording);
  return {static_cast<std::uint32_t>(std::count(job.measured.begin(), job.measured.end(), 1)),
          by_updates(job), sequence.heavy_between(0, sequence.size()) > 0};
}

void cut_to_common_steps(std::vector<trace::Recording>& recordings) {
  std::vector<std::vector<std::uint32_t>> begins;
  std::vector<job::StepsFoundBy> found_by;
  std::size_t fewest = SIZE_MAX;
  for (trace::Recording& recording : recordings) {
    job::Job job = steps_of(std::move(recording));
    recording = std::move(job.classes[0].recording);
    begins.push_back(std::move(job.classes[0].step_begin));
    found_by.push_back(job.found_by);
    fewest = std::min(fewest, begins.back().size());
  }
  const bool alike =
      std::adjacent_find(found_by.begin(), found_by.end(), std::not_equal_to<>()) == found_by.end();
  if (fewest < 2 || !alike) return;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    auto& records = recordings[i].records;
    std::size_t end = begins[i][fewest - 1];
    // The next step may have opened a group of calls.
    while (end > 0 && records[end - 1].kind == trace::Kind::group_begin) --end;
    records.resize(end);
  }
}

}  // namespace maya::collate
