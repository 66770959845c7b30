#include "network/flow.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <string>

namespace maya::network {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The remaining bytes of a flow and its rate since a point in time.
struct Transfer {
  double left{}, rate{}, since{}, end{kNever};
  bool active{};
  std::uint32_t version{}, seen{};
};

class Run {
 public:
  Run(const std::vector<double>& capacities, std::span<const Flow> flows)
      : flows_(flows),
        solver_(capacities),
        users_(capacities.size()),
        transfers_(flows.size()),
        waits_(flows.size()),
        ready_(flows.size()),
        next_(flows.size()),
        result_(flows.size()),
        link_seen_(capacities.size()) {}

  Result<std::vector<Interval>> run() {
    for (std::size_t i = 0; i < flows_.size(); ++i)
      for (std::int32_t before : flows_[i].after) {
        if (before < 0 || static_cast<std::size_t>(before) >= flows_.size())
          return Error{"flow " + std::to_string(i) + " comes after " + std::to_string(before) +
                       ", which does not exist"};
        next_[static_cast<std::size_t>(before)].push_back(static_cast<std::int32_t>(i));
        ++waits_[i];
      }
    for (std::size_t i = 0; i < flows_.size(); ++i)
      if (waits_[i] == 0) release(i, 0);
    while (!events_.empty()) {
      double now = events_.top().time;
      // All events of one moment change the rates together.
      changed_.clear();
      while (!events_.empty() && events_.top().time <= now) {
        Event event = events_.top();
        events_.pop();
        if (event.ends) {
          if (event.version == transfers_[event.flow].version) end(event.flow, now);
        } else {
          begin(event.flow, now);
        }
      }
      if (!changed_.empty()) share(now);
    }
    if (done_ != flows_.size())
      return Error{std::to_string(flows_.size() - done_) +
                   " flows wait for each other in a cycle; `after` must not form one"};
    return std::move(result_);
  }

 private:
  struct Event {
    double time;
    bool ends;
    std::uint32_t version;
    std::size_t flow;
    bool operator>(const Event& o) const { return time != o.time ? time > o.time : flow > o.flow; }
  };

  void release(std::size_t i, double after) {
    result_[i].start_ns = after + flows_[i].start_ns;
    transfers_[i].left = flows_[i].bytes;
    events_.push({result_[i].start_ns + flows_[i].latency_ns, false, 0, i});
  }

  void begin(std::size_t i, double now) {
    Transfer& t = transfers_[i];
    const Flow& flow = flows_[i];
    if (flow.bytes <= 0 || flow.uses->empty()) {
      finish(i, flow.bytes > 0 && flow.cap > 0 ? now + flow.bytes / flow.cap : now);
      return;
    }
    t.active = true, t.since = now, t.rate = 0;
    for (const Use& use : *flows_[i].uses)
      users_[static_cast<std::size_t>(use.link)].push_back(static_cast<std::int32_t>(i));
    changed_.push_back(static_cast<std::int32_t>(i));
  }

  void end(std::size_t i, double now) {
    Transfer& t = transfers_[i];
    t.active = false, ++t.version;
    for (const Use& use : *flows_[i].uses) {
      auto& list = users_[static_cast<std::size_t>(use.link)];
      auto at = std::find(list.begin(), list.end(), static_cast<std::int32_t>(i));
      *at = list.back(), list.pop_back();
    }
    changed_.push_back(static_cast<std::int32_t>(i));
    finish(i, now);
  }

  void finish(std::size_t i, double now) {
    result_[i].end_ns = now, ++done_;
    for (std::int32_t n : next_[i]) {
      auto follower = static_cast<std::size_t>(n);
      ready_[follower] = std::max(ready_[follower], now);
      if (--waits_[follower] == 0) release(follower, ready_[follower]);
    }
  }

  // Computes new rates for the connected part around the flows that changed.
  void share(double now) {
    ++mark_;
    std::vector<std::int32_t> part, queue;
    auto visit = [&](std::int32_t i) {
      Transfer& t = transfers_[static_cast<std::size_t>(i)];
      if (t.seen == mark_) return;
      t.seen = mark_;
      if (t.active) part.push_back(i);
      queue.push_back(i);
    };
    for (std::int32_t i : changed_) visit(i);
    while (!queue.empty()) {
      std::int32_t i = queue.back();
      queue.pop_back();
      for (const Use& use : *flows_[static_cast<std::size_t>(i)].uses) {
        auto l = static_cast<std::size_t>(use.link);
        if (link_seen_[l] == mark_) continue;
        link_seen_[l] = mark_;
        for (std::int32_t other : users_[l]) visit(other);
      }
    }
    std::sort(part.begin(), part.end());
    shares_.clear();
    for (std::int32_t i : part) {
      const Flow& flow = flows_[static_cast<std::size_t>(i)];
      shares_.push_back({*flow.uses, flow.cap, 0});
    }
    solver_.solve(shares_);
    for (std::size_t k = 0; k < part.size(); ++k) {
      Transfer& t = transfers_[static_cast<std::size_t>(part[k])];
      t.left = std::max(0.0, t.left - t.rate * (now - t.since));
      t.since = now;
      double rate = shares_[k].rate;
      double end = rate > 0 ? now + t.left / rate : kNever;
      bool same = rate == t.rate;
      t.rate = rate;
      if (same && t.end < kNever) continue;  // the scheduled event is still correct
      t.end = end;
      if (end < kNever) events_.push({end, true, ++t.version, static_cast<std::size_t>(part[k])});
    }
  }

  std::span<const Flow> flows_;
  MaxMin solver_;
  std::vector<std::vector<std::int32_t>> users_;  // active transfers by link
  std::vector<Transfer> transfers_;
  std::vector<int> waits_;
  std::vector<double> ready_;
  std::vector<std::vector<std::int32_t>> next_;
  std::vector<Interval> result_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::int32_t> changed_;
  std::vector<std::uint32_t> link_seen_;
  std::vector<MaxMin::Flow> shares_;
  std::uint32_t mark_{};
  std::size_t done_{};
};

}  // namespace

Result<std::vector<Interval>> simulate(const std::vector<double>& capacities,
                                       std::span<const Flow> flows) {
  return Run(capacities, flows).run();
}

}  // namespace maya::network
