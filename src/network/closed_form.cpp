#include "network/closed_form.h"

#include <algorithm>
#include <mutex>

#include "network/choice.h"

namespace maya::network {
namespace {

bool by_messages(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

}  // namespace

ClosedForm::ClosedForm(const catalog::Cluster& cluster, const Parameters& parameters,
                       const Environment& environment)
    : cluster_(cluster),
      parameters_(parameters),
      environment_(environment),
      exchange_(cluster_, parameters_, environment_),
      ports_(cluster_, parameters_.time),
      fitted_(cluster.extra.count("time.fitted") && cluster.extra.at("time.fitted") > 0) {}

Shape ClosedForm::shape(std::span<const std::int32_t> ranks) const {
  int count = static_cast<int>(ranks.size());
  Group group{count ? ranks[0] : 0, count > 1 ? ranks[1] - ranks[0] : 0, count};
  std::int32_t different = 0;
  for (int i = 0; i < count; ++i) different |= ranks[i] ^ (group.first + i * group.stride);
  if (different == 0) {
    {
      std::shared_lock lock(mutex_);
      if (auto at = regular_.find(group); at != regular_.end()) return at->second;
    }
    Shape found = shape_of(cluster_, ranks);
    std::unique_lock lock(mutex_);
    return regular_.emplace(group, found).first->second;
  }
  std::vector<std::int32_t> key(ranks.begin(), ranks.end());
  {
    std::shared_lock lock(mutex_);
    if (auto at = irregular_.find(key); at != irregular_.end()) return at->second;
  }
  Shape found = shape_of(cluster_, ranks);
  std::unique_lock lock(mutex_);
  return irregular_.emplace(std::move(key), found).first->second;
}

const std::vector<Candidate>& ClosedForm::candidates_of(const Shape& shape,
                                                        CollectiveKind kind) const {
  std::pair key{shape, kind};
  {
    std::shared_lock lock(mutex_);
    if (auto at = tables_.find(key); at != tables_.end()) return *at->second;
  }
  auto table = std::make_unique<std::vector<Candidate>>(
      candidates({cluster_, parameters_, environment_, shape, kind}));
  std::unique_lock lock(mutex_);
  return *tables_.emplace(key, std::move(table)).first->second;
}

CollectiveTime ClosedForm::finished(double latency_us, double transfer_us, bool known) const {
  CollectiveTime time;
  time.ns = (latency_us + transfer_us) * 1e3;
  double half = (latency_us * parameters_.time.spread_latency +
                 transfer_us * parameters_.time.spread_bandwidth) *
                1e3;
  time.low_ns = std::max(0.0, time.ns - half), time.high_ns = time.ns + half;
  time.origin = !known    ? estimate::Origin::unknown
                : fitted_ ? estimate::Origin::fitted
                          : estimate::Origin::first_principles;
  return time;
}

CollectiveTime ClosedForm::collective(const Collective& op,
                                      std::span<const std::int32_t> ranks) const {
  // PyTorch's barrier is an all-reduce of one element.
  bool barrier = op.kind == CollectiveKind::barrier;
  CollectiveKind kind = barrier ? CollectiveKind::all_reduce : op.kind;
  double bytes = barrier ? 4 : static_cast<double>(std::max<std::int64_t>(0, op.bytes));
  if (ranks.empty() || bytes == 0) {  // NCCL launches nothing for a count of zero
    CollectiveTime none = finished(0, 0, true);
    none.algorithm = "none";
    return none;
  }
  Shape s = shape(ranks);
  if (s.ranks == 1) {
    // Alone: a copy where input and output differ, nothing where they are the same.
    bool copies = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
                  kind == CollectiveKind::all_to_all;
    double us = copies ? 2 * bytes / (cluster_.gpu.memory_gbps * 1e3) : 0;
    CollectiveTime alone = finished(copies ? cluster_.gpu.launch_latency_us : 0, us, s.valid);
    alone.algorithm = "copy";
    return alone;
  }
  if (by_messages(kind)) {
    ExchangeTime e = kind == CollectiveKind::all_to_all ? exchange_.all_to_all(s, bytes)
                                                        : exchange_.rooted(s, bytes);
    CollectiveTime time = finished(e.latency_us, e.transfer_us, s.valid && e.reachable);
    time.algorithm = "p2p", time.protocol = "simple";
    time.channels = std::clamp(2 * e.peers, environment_.least_channels,
                               std::min(32, environment_.most_channels));
    return time;
  }
  bool reachable = s.islands == 1 || (cluster_.nics_per_node > 0 && cluster_.nic.gbps > 0);
  if (!reachable) {
    CollectiveTime none = finished(0, 0, false);
    none.algorithm = "unreachable";
    return none;
  }
  Choice choice = choose(candidates_of(s, kind), parameters_, s, kind, bytes,
                         reduces_in_switch(op, cluster_.gpu.capability_major));
  if (!choice.candidate) return finished(0, 0, false);
  const Candidate& c = *choice.candidate;
  CollectiveTime time = finished(c.latency_us, c.time_us(bytes) - c.latency_us, s.valid);
  time.algorithm = kAlgorithmNames[c.algorithm], time.protocol = kProtocolNames[c.protocol];
  time.channels = choice.channels;
  return time;
}

CollectiveTime ClosedForm::messages(std::span<const Message> group) const {
  bool valid = true;
  double bytes = 0;
  for (const Message& m : group) {
    valid &=
        m.from >= 0 && m.to >= 0 && m.from < cluster_.world_size() && m.to < cluster_.world_size();
    bytes += static_cast<double>(m.bytes);
  }
  if (group.empty() || bytes <= 0) {
    CollectiveTime none = finished(0, 0, true);
    none.algorithm = "none";
    return none;
  }
  ExchangeTime e = exchange_.messages(group);
  CollectiveTime time = finished(e.latency_us, e.transfer_us, valid && e.reachable);
  time.algorithm = "p2p", time.protocol = "simple";
  time.channels = std::clamp(2 * e.peers, environment_.least_channels,
                             std::min(32, environment_.most_channels));
  return time;
}

}  // namespace maya::network
