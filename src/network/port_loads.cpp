#include "network/port_loads.h"

#include <algorithm>

#include "network/traffic.h"

namespace maya::network {

PortLoads::PortLoads(const catalog::Cluster& cluster, const Time& time)
    : topology_(cluster, time), world_(cluster.world_size()) {}

Ports PortLoads::capacity() const {
  Ports result{};
  if (world_ < 1) return result;
  Topology::PortLinks ports = topology_.ports(0);
  for (std::size_t p = 0; p < port_count; ++p)
    if (ports.link[p] >= 0)
      result[p] =
          topology_.capacities()[static_cast<std::size_t>(ports.link[p])] / ports.sharers[p];
  return result;
}

Load PortLoads::collective(const Collective& op, const std::string& algorithm,
                           std::span<const std::int32_t> ranks, std::int32_t at) const {
  auto outside = [&](std::int32_t rank) { return rank < 0 || rank >= world_; };
  if (outside(at) || op.bytes <= 0 || std::any_of(ranks.begin(), ranks.end(), outside)) return {};
  const Traffic* known;
  {
    std::lock_guard lock(mutex_);
    auto [entry, fresh] = traffic_.try_emplace({op.kind, algorithm, {ranks.begin(), ranks.end()}});
    if (fresh) {
      entry->second.uses = traffic(topology_, op.kind, algorithm, ranks);
      for (const std::int32_t rank : ranks)
        for (const int link : topology_.ports(rank).link)
          if (link >= 0) ++entry->second.members[link];
    }
    known = &entry->second;  // addresses of map entries are stable
  }
  Load load{static_cast<double>(op.bytes), {}};
  Topology::PortLinks own = topology_.ports(at);
  for (std::size_t p = 0; p < port_count; ++p) {
    if (own.link[p] < 0) continue;
    const std::vector<Use>& uses = known->uses;
    auto use = std::lower_bound(uses.begin(), uses.end(), own.link[p],
                                [](const Use& u, int link) { return u.link < link; });
    if (use == uses.end() || use->link != own.link[p]) continue;
    const auto members = known->members.find(own.link[p]);
    load.weight[p] = use->weight / (members == known->members.end() ? 1 : members->second);
  }
  return load;
}

Load PortLoads::messages(std::span<const Message> group, std::int32_t at) const {
  Load load;
  for (const Message& m : group) {
    if (m.from < 0 || m.to < 0 || m.from >= world_ || m.to >= world_ || m.from == m.to) continue;
    auto bytes = static_cast<double>(std::max<std::int64_t>(0, m.bytes));
    load.bytes += bytes;
    if (m.from != at && m.to != at) continue;
    bool near = topology_.same_island(m.from, m.to);
    bool sends = m.from == at;
    load.weight[near ? (sends ? link_out : link_in) : sends ? card_out : card_in] += bytes;
    if (!near && topology_.trunk_up(m.from, m.to) >= 0)
      load.weight[sends ? trunk_up : trunk_down] += bytes;
  }
  if (load.bytes > 0)
    for (double& weight : load.weight) weight /= load.bytes;
  return load;
}

}  // namespace maya::network
