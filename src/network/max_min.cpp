#include "network/max_min.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace maya::network {

MaxMin::MaxMin(std::vector<double> capacities)
    : capacity_(std::move(capacities)),
      left_(capacity_.size()),
      weight_(capacity_.size()),
      slot_(capacity_.size(), -1) {}

void MaxMin::solve(std::span<Flow> flows) {
  // The flows of all links in one array; `start` is the begin of each link's part.
  std::vector<std::int32_t> touched, start;
  std::size_t uses = 0;
  for (const Flow& flow : flows)
    for (const Use& use : flow.uses) {
      auto l = static_cast<std::size_t>(use.link);
      if (slot_[l] < 0) {
        slot_[l] = static_cast<std::int32_t>(touched.size());
        touched.push_back(use.link);
        left_[l] = capacity_[l], weight_[l] = 0;
        start.push_back(0);
      }
      weight_[l] += use.weight;
      ++start[static_cast<std::size_t>(slot_[l])], ++uses;
    }
  std::int32_t sum = 0;
  for (std::int32_t& s : start) std::swap(s, sum), sum += s;
  start.push_back(static_cast<std::int32_t>(uses));
  std::vector<std::int32_t> users(uses), next(start.begin(), start.end() - 1);
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (const Use& use : flows[f].uses)
      users[static_cast<std::size_t>(
          next[static_cast<std::size_t>(slot_[static_cast<std::size_t>(use.link)])]++)] =
          static_cast<std::int32_t>(f);

  struct Level {
    double rate;
    std::int32_t id;  // a link, or ~flow for a flow's cap
    bool operator>(const Level& o) const { return rate > o.rate || (rate == o.rate && id > o.id); }
  };
  std::vector<Level> levels;
  levels.reserve(touched.size() + flows.size());
  for (std::int32_t l : touched) {
    auto i = static_cast<std::size_t>(l);
    if (weight_[i] > 0) levels.push_back({left_[i] / weight_[i], l});
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    flows[f].rate = -1;
    levels.push_back({flows[f].cap, ~static_cast<std::int32_t>(f)});
  }
  std::priority_queue<Level, std::vector<Level>, std::greater<>> heap({}, std::move(levels));

  auto stop = [&](Flow& flow, double rate) {
    flow.rate = rate;
    for (const Use& use : flow.uses) {
      auto l = static_cast<std::size_t>(use.link);
      left_[l] -= use.weight * rate;
      weight_[l] -= use.weight;
    }
  };
  std::size_t growing = flows.size();
  while (growing > 0 && !heap.empty()) {
    Level level = heap.top();
    heap.pop();
    if (level.id < 0) {
      Flow& flow = flows[static_cast<std::size_t>(~level.id)];
      if (flow.rate < 0) stop(flow, flow.cap), --growing;
      continue;
    }
    auto l = static_cast<std::size_t>(level.id);
    if (weight_[l] <= 1e-12) continue;
    double now = std::max(0.0, left_[l]) / weight_[l];
    if (now > level.rate * (1 + 1e-12)) {  // other flows have stopped since, so the rest gets more
      heap.push({now, level.id});
      continue;
    }
    auto slot = static_cast<std::size_t>(slot_[l]);
    for (std::int32_t i = start[slot]; i < start[slot + 1]; ++i) {
      Flow& flow = flows[static_cast<std::size_t>(users[static_cast<std::size_t>(i)])];
      if (flow.rate < 0) stop(flow, now), --growing;
    }
  }
  for (std::int32_t l : touched) slot_[static_cast<std::size_t>(l)] = -1;
}

}  // namespace maya::network
