#include "simulate/communication_times.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace maya::simulate {

std::uint32_t CommunicationTimes::of(std::uint16_t slot, std::span<const std::uint32_t> ops) {
  auto fresh = [&] {
    table_.push_back(evaluate(slot, ops));
    return static_cast<std::uint32_t>(table_.size() - 1);
  };
  if (ops.size() == 1) {
    std::uint64_t key = std::uint64_t{slot} << 32 | ops[0];
    auto it = single_.find(key);
    if (it == single_.end()) it = single_.emplace(key, fresh()).first;
    return it->second;
  }
  std::string key(reinterpret_cast<const char*>(ops.data()), ops.size_bytes());
  key.append(reinterpret_cast<const char*>(&slot), sizeof slot);
  auto it = fused_.find(key);
  if (it == fused_.end()) it = fused_.emplace(std::move(key), fresh()).first;
  return it->second;
}

CommunicationTime CommunicationTimes::evaluate(std::uint16_t slot,
                                               std::span<const std::uint32_t> ops) const {
  const job::RankClass& c = job_.classes[class_];
  const trace::Recording& recording = c.recording;
  const Meetings::Domain& domain = meetings_.domain(class_, slot);
  std::uint32_t x = meetings_.communicator(class_, slot);
  static const job::Communicator alone;
  const job::Communicator& own = x == none ? alone : job_.communicators[x];
  const auto place = static_cast<std::size_t>(recording.communicators[slot].rank);
  std::vector<std::span<const std::int32_t>> alike;
  for (std::uint32_t other : domain.communicators)
    alike.emplace_back(job_.communicators[other].placement());
  std::vector<const Work*> works;
  for (std::uint32_t index : ops) works.push_back(&recording.ops[index].work);
  return communication_time(
      works,
      {own.placement(), place < own.placement().size() ? own.placement()[place] : c.representative,
       alike, domain.between_nodes},
      network_, model_);
}

CommunicationTime communication_time(std::span<const Work* const> works, const Members& members,
                                     const network::Network& network, const Model& model) {
  // Collectives of the same kind that are launched together transfer their bytes as one. Different
  // kinds run one after the other.
  std::vector<Collective> collectives;
  std::vector<network::Message> messages;
  const std::int32_t here = members.here;
  std::int64_t sent = 0;
  std::size_t sends = 0;
  for (const Work* work : works) {
    if (const auto* op = std::get_if<Collective>(work)) {
      auto same =
          std::find_if(collectives.begin(), collectives.end(), [&](const Collective& other) {
            return other.kind == op->kind && other.root == op->root && other.dtype == op->dtype;
          });
      if (same == collectives.end())
        collectives.push_back(*op);
      else
        same->bytes += op->bytes;
    } else if (const auto* op = std::get_if<PointToPoint>(work)) {
      const auto at = static_cast<std::size_t>(op->peer);
      std::int32_t peer = at < members.placement.size() ? members.placement[at] : here;
      if (op->send) {
        messages.push_back({here, peer, op->bytes});
        sent += op->bytes, ++sends;
      } else {
        messages.push_back({peer, here, op->bytes});
      }
    }
  }
  CommunicationTime total;
  double ns = 0;
  int channels = 0;
  auto carry = [&](const network::Load& load) {
    double sum = total.load.bytes + load.bytes;
    if (sum <= 0) return;
    for (std::size_t p = 0; p < network::port_count; ++p)
      total.load.weight[p] =
          (total.load.weight[p] * total.load.bytes + load.weight[p] * load.bytes) / sum;
    total.load.bytes = sum;
  };
  auto add = [&](const network::CollectiveTime& t) {
    ns += t.ns, total.low_ns += t.low_ns, total.high_ns += t.high_ns;
    channels = std::max(channels, t.channels);
  };
  // Messages to all members are an all-to-all exchange, in which the messages of the others matter
  // too.
  std::size_t size = members.placement.size();
  if (size > 2 && sends >= size - 1 && messages.size() >= 2 * (size - 1)) {
    collectives.push_back({CollectiveKind::all_to_all, sent});
    messages.clear();
  }
  for (const Collective& op : collectives) {
    network::CollectiveTime slowest;
    for (std::span<const std::int32_t> other : members.alike) {
      network::CollectiveTime t = network.collective(op, other);
      if (t.ns >= slowest.ns) slowest = t;
    }
    add(slowest);
    if (size > 0) carry(network.load(op, members.placement, here));
  }
  if (!messages.empty()) {
    add(network.messages(messages));
    carry(network.load(messages, here));
  }
  total.ns = std::isfinite(ns) ? std::max<std::int64_t>(1, std::llround(std::min(ns, 1e13))) : 1;
  total.share = model.channel_share(channels);
  total.memory = model.memory_share(total.load, total.ns);
  total.family = collectives.empty() ? 2 : members.between_nodes ? 1 : 0;
  return total;
}

}  // namespace maya::simulate
