// Which ranks must run for a job to be known, from what one of them did.
#include <algorithm>
#include <map>
#include <set>

#include "maya/collate.h"

namespace maya::collate {
namespace {

struct Partners {
  std::set<std::int32_t> sends, receives;

  // An exchange with everybody, or around a ring, looks the same from every member. A stage of a
  // pipeline gets gradients from whom it sends activations.
  bool stages(std::int32_t size) const {
    std::set<std::int32_t> all = sends;
    all.insert(receives.begin(), receives.end());
    const bool everybody = size > 2 && std::ssize(all) >= size - 1;
    const bool both_ways = std::any_of(sends.begin(), sends.end(),
                                       [&](std::int32_t peer) { return receives.contains(peer); });
    return !all.empty() && !everybody && (both_ways || sends.empty() || receives.empty());
  }
};

// Members of a communicator: as recorded, else a stride apart, which is the whole job's for the
// communicator of all and, stages being outermost, a part of the job for any other.
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

}  // namespace

std::vector<std::int32_t> needed_ranks(const trace::Recording& recording) {
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
  const std::int32_t own = recording.identity.rank, world = recording.identity.world_size;
  std::set<std::int32_t> needed{own};
  std::set<std::vector<std::int32_t>> axes;
  for (const auto& [slot, found] : partners) {
    const trace::Communicator& c = recording.communicators[slot];
    if (!found.stages(c.size)) continue;
    auto members = members_of(c, found, world);
    if (!axes.insert(members).second) continue;
    // Stages along several axes: every combination.
    for (std::int32_t rank : std::vector(needed.begin(), needed.end()))
      for (std::int32_t member : members)
        if (const std::int32_t other = rank + member - own; other >= 0 && other < world)
          needed.insert(other);
  }
  return {needed.begin(), needed.end()};
}

}  // namespace maya::collate
