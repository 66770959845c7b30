// Determines which ranks have to run so that the whole job can be predicted.
#include <algorithm>
#include <map>
#include <set>

#include "collate/stages.h"
#include "maya/collate.h"

namespace maya::collate {
namespace {

struct Partners {
  std::set<std::int32_t> sends, receives;

  // All-to-all exchanges and rings look the same on every member. A pipeline stage receives
  // gradients from the ranks that it sends activations to.
  bool stages(std::int32_t size) const {
    std::set<std::int32_t> all = sends;
    all.insert(receives.begin(), receives.end());
    const bool everybody = size > 2 && std::ssize(all) >= size - 1;
    return !all.empty() && !everybody && (both_ways() || sends.empty() || receives.empty());
  }
  bool both_ways() const {
    return std::any_of(sends.begin(), sends.end(),
                       [&](std::int32_t peer) { return receives.contains(peer); });
  }
};

// The members of a communicator: as recorded, else at a constant stride. For the communicator of
// all ranks the stride is the distance to the nearest peer. For any other it is world_size / size,
// because stages are usually the outermost axis.
std::vector<std::int32_t> members_of(const trace::Communicator& c, const Partners& partners,
                                     std::int32_t world_size) {
  if (!c.ranks.empty() && c.size < world_size) return c.ranks;
  std::int32_t stride = world_size / c.size;
  if (c.size == world_size) {
    stride = world_size;
    for (const auto* peers : {&partners.sends, &partners.receives})
      for (std::int32_t peer : *peers)
        if (peer != c.rank) stride = std::min(stride, std::abs(peer - c.rank));
  }
  std::vector<std::int32_t> ranks;
  for (std::int32_t rank = c.size == world_size ? c.rank % stride : 0; rank < world_size;
       rank += stride)
    ranks.push_back(rank);
  return ranks;
}

std::map<std::uint16_t, Partners> partners_of(const trace::Recording& recording) {
  std::map<std::uint16_t, Partners> partners;
  auto look = [&](const trace::Record& r) {
    if (r.kind != trace::Kind::point_to_point || r.value >= recording.ops.size() ||
        r.aux >= recording.communicators.size())
      return;
    if (const auto* message = std::get_if<PointToPoint>(&recording.ops[r.value].work);
        message != nullptr && message->peer != recording.communicators[r.aux].rank)
      (message->send ? partners[r.aux].sends : partners[r.aux].receives).insert(message->peer);
  };
  for (const trace::Record& r : recording.records) {
    look(r);
    if (r.kind == trace::Kind::graph_launch && r.value < recording.graphs.size())
      for (const auto& node : recording.graphs[r.value].nodes) look(node.record);
  }
  return partners;
}

// The pipelines that the recorded rank is a stage of, each as the list of its ranks.
std::set<std::vector<std::int32_t>> axes_of(const trace::Recording& recording) {
  std::set<std::vector<std::int32_t>> axes;
  for (const auto& [slot, found] : partners_of(recording)) {
    const trace::Communicator& c = recording.communicators[slot];
    if (found.stages(c.size)) axes.insert(members_of(c, found, recording.identity.world_size));
  }
  return axes;
}

// Selects the stages of a long pipeline to run: the first, the last, and of those between them the
// outermost two and a middle one, which show what changes from stage to stage. If the number of
// stages is even, the outermost two are an odd number of stages apart, so that two alternating
// kinds of stages are noticed.
std::vector<std::int32_t> probes(const std::vector<std::int32_t>& stages) {
  constexpr std::size_t few = 5;
  if (stages.size() <= few) return stages;
  return {stages[0], stages[1], stages[stages.size() / 2], stages[stages.size() - 2],
          stages.back()};
}

}  // namespace

std::vector<std::int32_t> stages_of(const trace::Recording& recording) {
  const auto axes = axes_of(recording);
  return axes.size() == 1 ? *axes.begin() : std::vector<std::int32_t>();
}

std::vector<std::int32_t> needed_ranks(const trace::Recording& recording) {
  const std::int32_t own = recording.identity.rank, world = recording.identity.world_size;
  std::set<std::int32_t> needed{own};
  const auto axes = axes_of(recording);
  for (const auto& members : axes) {
    // With pipelines along several axes, every combination is needed.
    const auto wanted = axes.size() == 1 ? probes(members) : members;
    for (std::int32_t rank : std::vector(needed.begin(), needed.end()))
      for (std::int32_t member : wanted)
        if (const std::int32_t other = rank + member - own; other >= 0 && other < world)
          needed.insert(other);
  }
  return {needed.begin(), needed.end()};
}

std::vector<std::int32_t> stages_both_ways(const trace::Recording& recording) {
  for (const auto& [slot, found] : partners_of(recording))
    if (found.stages(recording.communicators[slot].size) && found.both_ways())
      return members_of(recording.communicators[slot], found, recording.identity.world_size);
  return {};
}

MoreRanks more_ranks(const std::vector<trace::Recording>& recordings) {
  if (recordings.empty()) return {};
  DerivedStages derived = derive_stages(recordings, Derive::ends);
  const std::vector<std::int32_t>& unknown = derived.needed;
  const std::vector<std::int32_t> stages = stages_of(recordings.front());
  std::set<std::int32_t> more;
  // The first, the middle and the last of each run of stages that cannot be derived.
  for (std::size_t s = 0, end = 0; s < stages.size(); s = end + 1) {
    auto is_unknown = [&](std::size_t i) {
      return i < stages.size() &&
             std::find(unknown.begin(), unknown.end(), stages[i]) != unknown.end();
    };
    for (end = s; is_unknown(end);) ++end;
    if (end > s) more.insert({stages[s], stages[(s + end - 1) / 2], stages[end - 1]});
  }
  return {{more.begin(), more.end()}, std::move(derived.why)};
}

}  // namespace maya::collate
