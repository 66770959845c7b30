#include "network/flow_network.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "network/traffic.h"

namespace maya::network {
namespace {

// The part of an activity's time in which no data is transferred.
double latency(const ClosedForm& alone, const Activity& a, const CollectiveTime& time) {
  if (a.ranks.size() < 2) return time.ns;
  Shape shape = alone.shape(a.ranks);
  if (time.algorithm == "p2p")
    return std::min(time.ns, 1e3 * alone.exchange().all_to_all(shape, 0).latency_us);
  auto kind = a.op.kind == CollectiveKind::barrier ? CollectiveKind::all_reduce : a.op.kind;
  for (const Candidate& c : alone.candidates_of(shape, kind))
    if (time.algorithm == kAlgorithmNames[c.algorithm] &&
        time.protocol == kProtocolNames[c.protocol])
      return std::min(time.ns, c.latency_us * 1e3);
  return time.ns;
}

}  // namespace

FlowNetwork::FlowNetwork(const catalog::Cluster& cluster, const Parameters& parameters,
                         const Environment& environment, Measured measured)
    : alone_(cluster, parameters, environment, std::move(measured)),
      topology_(alone_.cluster(), alone_.parameters().time) {}

Result<std::vector<Interval>> FlowNetwork::run(std::span<const Activity> activities) const {
  int world = alone_.cluster().world_size();
  for (std::size_t i = 0; i < activities.size(); ++i) {
    auto outside = [&](std::int32_t rank) { return rank < 0 || rank >= world; };
    bool bad = std::any_of(activities[i].ranks.begin(), activities[i].ranks.end(), outside);
    for (const Message& m : activities[i].messages) bad |= outside(m.from) || outside(m.to);
    if (bad)
      return Error{"activity " + std::to_string(i) + " has a rank outside 0 to " +
                   std::to_string(world - 1) + "; name a cluster with more nodes"};
  }
  std::map<std::tuple<CollectiveKind, std::string, std::vector<std::int32_t>>, std::vector<Use>>
      plans;
  std::deque<std::vector<Use>> own;
  std::vector<Flow> flows;
  flows.reserve(activities.size());
  for (const Activity& a : activities) {
    Flow flow{.start_ns = a.start_ns, .after = a.after};
    CollectiveTime time =
        a.messages.empty() ? alone_.collective(a.op, a.ranks) : alone_.messages(a.messages);
    if (a.messages.empty()) {
      auto [at, fresh] = plans.try_emplace({a.op.kind, time.algorithm, a.ranks});
      if (fresh) at->second = traffic(topology_, a.op.kind, time.algorithm, a.ranks);
      flow.uses = &at->second;
      flow.bytes = static_cast<double>(std::max<std::int64_t>(1, a.op.bytes));
      flow.latency_ns = latency(alone_, a, time);
    } else {
      std::map<int, double> sum;
      for (const Message& m : a.messages) flow.bytes += static_cast<double>(m.bytes);
      for (const Message& m : a.messages) {
        std::vector<Use> path;
        topology_.route(m.from, m.to, static_cast<double>(m.bytes) / std::max(1.0, flow.bytes),
                        path);
        for (const Use& use : path) sum[use.link] += use.weight;
      }
      auto& uses = own.emplace_back();
      for (const auto& [link, weight] : sum) uses.push_back({link, weight});
      flow.uses = &uses;
      flow.latency_ns = std::min(time.ns, alone_.exchange().messages(a.messages).latency_us * 1e3);
    }
    if (time.ns <= flow.latency_ns) flow.bytes = 0, flow.latency_ns = time.ns;
    flow.cap = flow.bytes / std::max(1e-9, time.ns - flow.latency_ns);
    flows.push_back(flow);
  }
  return simulate(topology_.capacities(), flows);
}

CollectiveTime FlowNetwork::collective(const Collective& op,
                                       std::span<const std::int32_t> ranks) const {
  CollectiveTime time = alone_.collective(op, ranks);
  Activity activity{.op = op, .ranks = {ranks.begin(), ranks.end()}};
  auto intervals = run({&activity, 1});
  if (!intervals || time.ns <= 0) return time;
  double factor = (*intervals)[0].end_ns / time.ns;
  time.ns *= factor, time.low_ns *= factor, time.high_ns *= factor;
  return time;
}

CollectiveTime FlowNetwork::messages(std::span<const Message> group) const {
  CollectiveTime time = alone_.messages(group);
  Activity activity{.messages = {group.begin(), group.end()}};
  if (group.empty()) return time;
  auto intervals = run({&activity, 1});
  if (!intervals || time.ns <= 0) return time;
  double factor = (*intervals)[0].end_ns / time.ns;
  time.ns *= factor, time.low_ns *= factor, time.high_ns *= factor;
  return time;
}

}  // namespace maya::network
