#include "simulate/testing/slow_simulator.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "simulate/testing/slow_plan.h"

namespace maya::testing {
namespace {

using simulate::Model;
using simulate::one;
using simulate::one_shift;

class Slow {
 public:
  Slow(const job::Job& job, const catalog::Cluster& cluster, const estimate::Estimator& estimator,
       const network::Network& network)
      : job_(job), model_(Model::from(cluster, {})), network_(network) {
    SlowPlan plan = write_down(job, model_, estimator, network);
    nodes_ = std::move(plan.nodes), calls_ = std::move(plan.calls);
    for (const Node& n : nodes_) gpus_.insert({n.rank, n.device});
  }

  SlowResult run() {
    activity_.resize(job_.classes.size());
    for (now_ = 0; now_ < 2'000'000; ++now_) {
      while (deduce()) {
      }
      if (std::all_of(nodes_.begin(), nodes_.end(),
                      [](const Node& n) { return n.done != unknown; }) &&
          std::all_of(calls_.begin(), calls_.end(), [](const Call& c) { return c.end != unknown; }))
        break;
      grant();
      tick();
    }
    return result();
  }

 private:
  Node& node(int i) { return nodes_[static_cast<std::size_t>(i)]; }

  // Computes times that follow from known times. Returns true if there was one.
  bool deduce() {
    bool news = false;
    for (Call& c : calls_) {
      if (c.issue == unknown) {
        std::int64_t start = 0;
        bool known = true;
        auto after = [&](std::int64_t t) { known &= t != unknown, start = std::max(start, t); };
        if (c.before >= 0) after(calls_[static_cast<std::size_t>(c.before)].end);
        if (c.resumed_after >= 0) after(calls_[static_cast<std::size_t>(c.resumed_after)].issue);
        start += c.cpu;
        if (c.room >= 0) after(node(c.room).done);
        if (known) c.issue = start + c.cost, news = true;
      }
      if (c.issue != unknown && c.end == unknown) {
        std::int64_t end = c.issue;
        bool known = true;
        for (int w : c.waits) known &= node(w).done != unknown, end = std::max(end, node(w).done);
        if (known) c.end = end, news = true;
      }
    }
    for (Node& n : nodes_) {
      if (n.ready == unknown) {
        std::int64_t ready = calls_[n.call].issue;
        bool known = ready != unknown;
        for (int b : n.before)
          known &= node(b).done != unknown, ready = std::max(ready, node(b).done);
        if (known) {
          n.ready = ready + (n.what == Node::What::nothing ? 0 : n.gap);
          if (n.what == Node::What::nothing) n.done = n.ready;
          if (n.what == Node::What::kernel || n.what == Node::What::host_function)
            n.begin = n.ready;
          news = true;
        }
      }
      if (n.what == Node::What::communication && n.begin == unknown && n.ready != unknown) {
        std::int64_t begin = n.ready;
        bool known = true;
        for (int p : n.partners)
          known &= node(p).ready != unknown, begin = std::max(begin, node(p).ready);
        if (known) n.begin = begin, news = true;
      }
      if (n.local_end != unknown && n.done == unknown) {
        std::int64_t end = n.local_end;
        bool known = true;
        if (n.ends_together)
          for (int p : n.partners)
            known &= node(p).local_end != unknown, end = std::max(end, node(p).local_end);
        if (known) n.done = end, news = true;
      }
    }
    return news;
  }

  // Starts the copies that can begin now.
  void grant() {
    for (auto [rank, device] : gpus_)
      for (int engine = 0; engine < 3; ++engine) {
        bool busy = false;
        int best = -1;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
          const Node& n = nodes_[i];
          if (n.rank != rank || n.device != device || n.what != Node::What::copy ||
              n.engine != engine || n.ready == unknown || n.ready > now_)
            continue;
          if (n.begin != unknown) {
            busy |= n.local_end == unknown;
          } else if (best < 0 || std::tuple(n.ready, n.priority, n.call, n.chain) <
                                     std::tuple(node(best).ready, node(best).priority,
                                                node(best).call, node(best).chain)) {
            best = static_cast<int>(i);
          }
        }
        if (!busy && best >= 0) node(best).begin = now_;
      }
  }

  // Max-min fair shares by definition: all rates grow together until a port is full or a transfer
  // is as fast as it is alone. These transfers stop growing, the others continue.
  std::vector<std::uint32_t> port_shares(const std::vector<Node*>& transfers) const {
    std::vector<std::uint32_t> result(transfers.size(), one);
    if (transfers.size() < 2 || !model_.share_links) return result;
    network::Ports capacity = network_.port_capacity();
    auto limit = [&](const Node& n) {
      double rate = n.alone;
      for (std::size_t p = 0; p < network::port_count; ++p)
        if (capacity[p] > 0 && n.weight[p] > 0) rate = std::min(rate, capacity[p] / n.weight[p]);
      return rate;
    };
    std::vector<double> rate(transfers.size(), -1);
    for (;;) {
      double level = 1e300;
      for (std::size_t i = 0; i < transfers.size(); ++i)
        if (rate[i] < 0) level = std::min(level, transfers[i]->alone);
      for (std::size_t p = 0; p < network::port_count; ++p) {
        double left = capacity[p], growing = 0;
        for (std::size_t i = 0; i < transfers.size(); ++i)
          (rate[i] < 0 ? growing += transfers[i]->weight[p]
                       : left -= transfers[i]->weight[p] * rate[i]);
        if (capacity[p] > 0 && growing > 0) level = std::min(level, std::max(0.0, left) / growing);
      }
      if (level == 1e300) break;
      std::vector<std::size_t> stop;
      for (std::size_t i = 0; i < transfers.size(); ++i) {
        if (rate[i] >= 0) continue;
        bool full = transfers[i]->alone <= level * (1 + 1e-12);
        for (std::size_t p = 0; p < network::port_count; ++p) {
          double left = capacity[p], growing = 0;
          for (std::size_t k = 0; k < transfers.size(); ++k)
            (rate[k] < 0 ? growing += transfers[k]->weight[p]
                         : left -= transfers[k]->weight[p] * rate[k]);
          full |= capacity[p] > 0 && transfers[i]->weight[p] > 0 &&
                  left <= growing * level * (1 + 1e-12);
        }
        if (full) stop.push_back(i);
      }
      for (std::size_t i : stop) rate[i] = level;
    }
    for (std::size_t i = 0; i < transfers.size(); ++i)
      if (limit(*transfers[i]) > 0)
        result[i] = static_cast<std::uint32_t>(std::clamp<long>(
            std::lround(rate[i] / limit(*transfers[i]) * one), 1, static_cast<long>(one)));
    return result;
  }

  // Advances from now_ to now_ + 1.
  void tick() {
    for (auto& activity : activity_) activity.push_back(0);
    for (auto [rank, device] : gpus_) {
      std::vector<Node*> kernels, transfers, others;
      std::uint32_t taken = 0;
      bool waiting = false, copying = false;
      for (Node& n : nodes_) {
        if (n.rank != rank || n.device != device || n.what == Node::What::nothing) continue;
        bool running = n.begin != unknown && n.begin <= now_ && n.local_end == unknown;
        bool resident = n.what == Node::What::communication && n.ready != unknown &&
                        n.ready <= now_ && (n.done == unknown || n.done > now_);
        if (resident) taken += n.share, waiting = true;
        if (!running) continue;
        if (n.what == Node::What::kernel)
          kernels.push_back(&n);
        else if (n.what == Node::What::communication)
          transfers.push_back(&n);
        else
          others.push_back(&n), copying |= n.what == Node::What::copy;
      }
      activity_[rank].back() |= (kernels.empty() ? 0 : 1) | (waiting ? 2 : 0) | (copying ? 4 : 0);
      std::sort(kernels.begin(), kernels.end(), [](const Node* a, const Node* b) {
        return std::tuple(a->priority, a->begin, a->call, a->chain) <
               std::tuple(b->priority, b->begin, b->call, b->chain);
      });
      std::uint32_t left = one - std::min(taken, model_.max_communication_share);
      for (Node* n : kernels) {
        std::uint32_t got = std::min(left, n->share);
        left -= got;
        std::uint64_t rate = model_.rate_on(got, n->share, n->blocks);
        std::uint32_t lost = 0;
        for (const Node* transfer : transfers) lost += transfer->memory;
        if (!transfers.empty())
          rate = model_.beside_transfers(rate, std::min(lost, one / 2), n->memory_bound);
        n->work -= static_cast<std::int64_t>(rate);
      }
      std::vector<std::uint32_t> shares = port_shares(transfers);
      for (std::size_t i = 0; i < transfers.size(); ++i) {
        std::uint64_t rate = kernels.empty() ? one : model_.communication_rate;
        transfers[i]->work -=
            std::max<std::int64_t>(1, static_cast<std::int64_t>(rate * shares[i] >> one_shift));
      }
      for (Node* n : others) n->work -= one;
      for (Node& n : nodes_)
        if (n.rank == rank && n.device == device && n.begin != unknown && n.begin <= now_ &&
            n.local_end == unknown && n.work <= 0)
          n.local_end = now_ + 1;
    }
  }

  SlowResult result() {
    SlowResult out;
    out.finished =
        std::all_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.done != unknown; });
    for (const Node& n : nodes_)
      if (n.what != Node::What::nothing)
        out.spans.push_back({n.rank, n.record, calls_[n.call].issue, n.begin, n.done});
    std::sort(out.spans.begin(), out.spans.end());
    for (std::uint32_t rank = 0; rank < job_.classes.size(); ++rank) {
      std::vector<std::int64_t> times;
      std::int64_t latest = 0;
      for (std::uint32_t begin : job_.classes[rank].step_begin) {
        std::uint32_t last_record = 0;
        const Call* last = nullptr;
        for (const Call& c : calls_)
          if (c.rank == rank && c.record < begin && c.record >= last_record)
            last = &c, last_record = c.record;
        if (last != nullptr) latest = std::max(latest, last->end);
        for (const Node& n : nodes_)
          if (n.rank == rank && calls_[n.call].record < begin) latest = std::max(latest, n.done);
        times.push_back(latest);
      }
      out.boundaries.push_back(times);
      simulate::Breakdown b;
      for (std::int64_t t = times.front(); t < times.back(); ++t) {
        unsigned a = static_cast<std::size_t>(t) < activity_[rank].size()
                         ? activity_[rank][static_cast<std::size_t>(t)]
                         : 0;
        b.compute_ns += a & 1, b.communication_ns += (a & 2) != 0;
        b.exposed_communication_ns += (a & 3) == 2, b.copy_ns += a == 4, b.idle_ns += a == 0;
      }
      out.breakdown.push_back(b);
    }
    return out;
  }

  const job::Job& job_;
  Model model_;
  const network::Network& network_;
  std::vector<Node> nodes_;
  std::vector<Call> calls_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> gpus_;  // rank, device
  std::int64_t now_{};
  std::vector<std::vector<unsigned>> activity_;
};

}  // namespace

SlowResult simulate_slowly(const job::Job& job, const catalog::Cluster& cluster,
                           const estimate::Estimator& estimator, const network::Network& network) {
  return Slow(job, cluster, estimator, network).run();
}

}  // namespace maya::testing
