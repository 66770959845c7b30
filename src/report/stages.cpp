#include "report/stages.h"

#include <algorithm>
#include <cstddef>

#include "collate/stages.h"

namespace maya::report {
namespace {

// The position of the class in its pipeline; -1: it is in none.
std::ptrdiff_t place_of(const job::RankClass& rank_class, const std::vector<std::int32_t>& first) {
  auto place = [&](const std::vector<std::int32_t>& pipeline) {
    const auto at = std::find(pipeline.begin(), pipeline.end(), rank_class.representative);
    return at == pipeline.end() ? -1 : at - pipeline.begin();
  };
  const std::ptrdiff_t found = place(first);
  // A class outside the pipeline of the first rank belongs to another data- or tensor-parallel
  // rank.
  return found >= 0 ? found : place(collate::stages_of(rank_class.recording));
}

}  // namespace

std::vector<PipelineStage> pipeline_stages(const job::Job& job) {
  if (job.classes.empty()) return {};
  const auto lowest = std::min_element(job.classes.begin(), job.classes.end(),
                                       [](const job::RankClass& a, const job::RankClass& b) {
                                         return a.representative < b.representative;
                                       });
  const std::vector<std::int32_t> first = collate::stages_of(lowest->recording);
  if (first.size() < 2) return {};
  std::vector<PipelineStage> stages(first.size());
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].rank = first[s];
  for (const job::RankClass& rank_class : job.classes) {
    const std::ptrdiff_t at = place_of(rank_class, first);
    if (at < 0) return {};
    PipelineStage& stage = stages[static_cast<std::size_t>(at)];
    const bool ran = rank_class.derived_from < 0;
    if (stage.ranks == 0 || rank_class.representative == stage.rank)
      stage.stand_in = ran ? rank_class.representative : rank_class.derived_from;
    stage.recorded |= ran;
    stage.ranks += static_cast<std::int32_t>(rank_class.ranks.size());
  }
  return stages;
}

}  // namespace maya::report
