#include "simulate/testing/slow_simulator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "simulate/graph_chains.h"
#include "simulate/model.h"

namespace maya::testing {
namespace {

using simulate::Model;
using simulate::one;
using simulate::one_shift;
using trace::Kind;
using trace::Record;

constexpr std::int64_t unknown = -1;

struct Node {
  enum class What { nothing, kernel, copy, communication, host_function } what{What::nothing};
  std::uint32_t rank{}, record{}, call{};  // call: host call that issues it
  std::vector<int> before;
  std::int64_t gap{};
  std::int32_t priority{};
  int chain{};
  std::uint32_t share{};
  int engine{-1};             // copies
  int link{};                 // communication: 0, 1; 2 messages
  std::vector<int> partners;  // start together
  bool ends_together{};
  std::int64_t work{};  // left: ns · 2^16
  std::int64_t ready{unknown}, begin{unknown}, local_end{unknown}, done{unknown};
};

struct Call {
  std::uint32_t rank{}, record{};
  int before{-1};  // the thread's previous
  int resumed_after{-1};
  std::int64_t cpu{}, cost{};
  int room{-1};  // node that must be done to make room in the queue
  std::vector<int> waits;
  std::int64_t issue{unknown}, end{unknown};
};

class Slow {
 public:
  Slow(const job::Job& job, const catalog::Cluster& cluster, const estimate::Estimator& estimator,
       const network::Network& network)
      : job_(job), model_(Model::from(cluster, {})), estimator_(estimator), network_(network) {}

  SlowResult run() {
    for (rank_ = 0; rank_ < job_.classes.size(); ++rank_) write_down();
    find_partners();
    breakdown_.resize(job_.classes.size());
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
  // --- Writing down what there is to do
  // -----------------------------------------------------------
  struct StreamState {
    std::vector<int> nodes;
    std::vector<int> submissions;
    bool non_blocking{};
    std::int32_t priority{};
    std::uint32_t first_call{};
  };

  int add(Node node) {
    node.rank = rank_;
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size() - 1);
  }

  // A node at the end of a stream, ordered with the legacy default stream.
  int on_stream(const Record& r, Node node) {
    StreamState& s = streams_[r.stream];
    if (!s.nodes.empty()) node.before.push_back(s.nodes.back());
    if (r.flags & trace::legacy) {
      for (auto& [id, other] : streams_)
        if (id != 0 && !other.non_blocking)
          node.before.insert(node.before.end(), other.nodes.begin(), other.nodes.end());
    } else if (r.stream != 0 && !s.non_blocking) {
      for (int n : legacy_) node.before.push_back(n);
    }
    node.priority = s.priority;
    int index = add(std::move(node));
    s.nodes.push_back(index);
    if (r.flags & trace::legacy) legacy_.push_back(index);
    return index;
  }

  void take_room(std::uint16_t stream, Call& call, bool first) {
    const auto& submissions = streams_[stream].submissions;
    if (first && submissions.size() >= model_.queue_depth)
      call.room = submissions[submissions.size() - model_.queue_depth];
  }

  Node work_node(const trace::Recording& recording, const Record& r, std::uint32_t record) {
    Node n;
    n.record = record;
    n.call = static_cast<std::uint32_t>(calls_.size() - 1);
    n.gap = model_.launch_gap_ns;
    if (r.kind == Kind::host_function) {
      n.what = Node::What::host_function;
      n.work = model_.callback_ns << one_shift;
      return n;
    }
    const Op& op = recording.ops[r.value];
    n.what = Node::What::kernel;
    n.share = model_.kernel_share(op);
    n.work = std::max<std::int64_t>(1, std::llround(estimator_(op).ns)) << one_shift;
    if (const auto* copy = std::get_if<Copy>(&op.work);
        copy && copy->direction != CopyDirection::device) {
      n.what = Node::What::copy;
      n.engine = copy->direction == CopyDirection::host_to_device   ? 0
                 : copy->direction == CopyDirection::device_to_host ? (model_.engines < 2 ? 0 : 1)
                                                                    : 2;
      if (copy->direction == CopyDirection::host) n.what = Node::What::host_function;
    }
    return n;
  }

  const job::Communicator& communicator(std::uint16_t slot) const {
    for (const auto& c : job_.communicators)
      for (std::size_t i = 0; i < c.ranks.size(); ++i)
        if (c.ranks[i] == static_cast<std::int32_t>(rank_) && c.slots[i] == slot) return c;
    std::abort();
  }

  Node communication_node(const trace::Recording& recording, std::uint16_t slot,
                          const std::vector<std::uint32_t>& ops, std::uint32_t record) {
    Node n;
    n.what = Node::What::communication;
    n.record = record;
    n.call = static_cast<std::uint32_t>(calls_.size() - 1);
    n.gap = model_.launch_gap_ns;
    const job::Communicator& c = communicator(slot);
    std::map<std::tuple<CollectiveKind, std::int32_t, DType>, Collective> collectives;
    std::vector<network::Message> messages;
    std::int64_t sent = 0;
    std::size_t sends = 0;
    auto me = static_cast<std::int32_t>(rank_);
    int index = static_cast<int>(nodes_.size());
    for (std::uint32_t o : ops) {
      if (const auto* op = std::get_if<Collective>(&recording.ops[o].work)) {
        auto [it, fresh] = collectives.try_emplace({op->kind, op->root, op->dtype}, *op);
        if (!fresh) it->second.bytes += op->bytes;
        meetings_[{c.id, -1, -1, sequence_[{rank_, c.id, -1, true}]++}].push_back(index);
        n.ends_together = true;
      } else {
        const auto& message = std::get<PointToPoint>(recording.ops[o].work);
        std::int32_t peer = c.ranks[static_cast<std::size_t>(message.peer)];
        std::int32_t from = message.send ? me : peer, to = message.send ? peer : me;
        messages.push_back({from, to, message.bytes});
        if (message.send) sent += message.bytes, ++sends;
        meetings_[{c.id, from, to, sequence_[{rank_, c.id, peer, message.send}]++}].push_back(
            index);
      }
    }
    std::size_t size = c.ranks.size();
    if (size > 2 && sends >= size - 1 && messages.size() >= 2 * (size - 1)) {
      collectives[{CollectiveKind::all_to_all, -2, DType::unknown}] = {CollectiveKind::all_to_all,
                                                                       sent};
      messages.clear();
    }
    double ns = 0;
    int channels = 0;
    auto count = [&](const network::CollectiveTime& t) {
      ns += t.ns, channels = std::max(channels, t.channels);
    };
    for (const auto& [key, op] : collectives) count(network_.collective(op, c.ranks));
    if (!messages.empty()) count(network_.messages(messages));
    n.work = std::max<std::int64_t>(1, std::llround(ns)) << one_shift;
    n.share = model_.channel_share(channels);
    bool apart = std::any_of(c.ranks.begin(), c.ranks.end(), [&](std::int32_t r) {
      return r / model_.gpus_per_node != c.ranks[0] / model_.gpus_per_node;
    });
    n.link = collectives.empty() ? 2 : apart ? 1 : 0;
    return n;
  }

  void write_down() {
    streams_.clear(), legacy_.clear();
    const trace::Recording& recording = job_.classes[rank_].recording;
    std::map<std::uint16_t, int> last_of_thread;
    std::map<std::uint16_t, std::uint64_t> gap;
    std::map<std::uint32_t, int> events;
    struct Grouped {
      std::uint32_t record;
      Record r;
    };
    std::map<std::uint16_t, std::vector<Grouped>> groups;
    std::map<std::uint16_t, int> depth;
    const auto first_node = nodes_.size();
    const auto first_call = calls_.size();
    const Record* wide = nullptr;
    for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
      const Record& r = recording.records[i];
      if (r.kind == Kind::wide) {
        wide = &r;
        continue;
      }
      if (r.kind == Kind::none) continue;
      if (r.kind == Kind::host_gap) {
        gap[r.thread] += r.host_ns + 1000ull * r.value;
        continue;
      }
      Call call;
      call.rank = rank_, call.record = i;
      call.cpu = model_.host_ns(r.host_ns + gap[r.thread]);
      gap[r.thread] = 0;
      call.cost = model_.call_cost(r.kind);
      if (last_of_thread.count(r.thread)) call.before = last_of_thread[r.thread];
      if ((r.flags & trace::resumed) && calls_.size() > first_call)
        call.resumed_after = static_cast<int>(calls_.size() - 1);
      last_of_thread[r.thread] = static_cast<int>(calls_.size());
      calls_.push_back(call);
      auto& self = calls_.back();
      auto wait_for_all = [&] {
        for (auto n = first_node; n < nodes_.size(); ++n) self.waits.push_back(static_cast<int>(n));
      };
      auto submit = [&](const Record& where, Node node, bool first) {
        take_room(where.stream, self, first);
        int n = on_stream(where, std::move(node));
        streams_[where.stream].submissions.push_back(n);
        if (where.flags & trace::blocking) self.waits.push_back(n);
      };
      switch (r.kind) {
        case Kind::launch:
        case Kind::copy:
        case Kind::fill:
        case Kind::host_function:
          submit(r, work_node(recording, r, i), true);
          break;
        case Kind::collective:
        case Kind::point_to_point:
          if (depth[r.thread] > 0)
            self.cost = 0, groups[r.thread].push_back({i, r});
          else
            submit(r, communication_node(recording, r.aux, {r.value}, i), true);
          break;
        case Kind::group_begin:
          ++depth[r.thread];
          break;
        case Kind::group_end:
          if (--depth[r.thread] == 0) {
            auto calls = std::move(groups[r.thread]);
            groups[r.thread].clear();
            if (calls.empty()) self.cost = 0;
            bool first = true;
            while (!calls.empty()) {
              Grouped head = calls.front();
              std::vector<std::uint32_t> ops;
              std::vector<Grouped> rest;
              for (const Grouped& g : calls) {
                if (g.r.stream == head.r.stream && g.r.aux == head.r.aux)
                  ops.push_back(g.r.value);
                else
                  rest.push_back(g);
              }
              submit(head.r, communication_node(recording, head.r.aux, ops, head.record), first);
              first = false;
              calls = std::move(rest);
            }
          }
          break;
        case Kind::graph_launch:
          graph(recording, r, i, self);
          break;
        case Kind::event_record: {
          Node n;
          n.call = static_cast<std::uint32_t>(calls_.size() - 1);
          n.record = i;
          events[r.value] = on_stream(r, n);
          break;
        }
        case Kind::stream_wait_event:
          if (events.count(r.value)) {
            Node n;
            n.call = static_cast<std::uint32_t>(calls_.size() - 1);
            n.record = i;
            n.before.push_back(events[r.value]);
            on_stream(r, n);
          }
          break;
        case Kind::event_synchronize:
          if (events.count(r.value)) self.waits.push_back(events[r.value]);
          break;
        case Kind::stream_synchronize:
          self.waits = streams_[r.stream].nodes;
          if (r.flags & trace::legacy)
            for (auto& [id, other] : streams_)
              if (id != 0 && !other.non_blocking)
                self.waits.insert(self.waits.end(), other.nodes.begin(), other.nodes.end());
          break;
        case Kind::device_synchronize:
          wait_for_all();
          break;
        case Kind::stream_create:
          streams_[r.stream].non_blocking = r.flags & trace::non_blocking;
          streams_[r.stream].priority = r.aux == 0 ? 0 : r.aux - 1000;
          break;
        case Kind::release:
          if (!(r.flags & trace::async) && wide != nullptr &&
              std::bit_cast<trace::Wide>(*wide).x == 0)
            wait_for_all();
          break;
        default:
          break;
      }
      wide = nullptr;
    }
  }

  void graph(const trace::Recording& recording, const Record& r, std::uint32_t record, Call& call) {
    const trace::Graph& g = recording.graphs[r.value];
    simulate::GraphChains layout = simulate::lay_out(g);
    if (g.nodes.empty()) return;
    if (layout.last_node_of_first != simulate::GraphChains{}.last_node_of_first)
      take_room(r.stream, call, true);
    Node open;
    open.call = static_cast<std::uint32_t>(calls_.size() - 1);
    open.record = record;
    int start = on_stream(r, open);
    std::map<std::uint32_t, int> chain_of;
    for (const auto& entry : layout.entries)
      if (entry.what == simulate::ChainEntry::What::node)
        chain_of[entry.index] = static_cast<int>(entry.chain);
    std::vector<int> placed;
    bool first = true;
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
      const Record& node = g.nodes[i].record;
      Node n;
      n.call = open.call, n.record = record;
      if (node.kind == Kind::collective || node.kind == Kind::point_to_point)
        n = communication_node(recording, node.aux, {node.value}, record);
      else if (node.kind == Kind::launch || node.kind == Kind::copy || node.kind == Kind::fill ||
               node.kind == Kind::host_function)
        n = work_node(recording, node, record);
      if (n.what != Node::What::nothing) {
        if (!first) n.gap = model_.graph_gap_ns;
        first = false;
      }
      n.chain = chain_of[i];
      n.priority = streams_[r.stream].priority;
      n.before.push_back(start);
      for (std::uint32_t b : g.nodes[i].after) n.before.push_back(placed[b]);
      placed.push_back(add(std::move(n)));
    }
    if (layout.last_node_of_first != simulate::GraphChains{}.last_node_of_first)
      streams_[r.stream].submissions.push_back(placed[layout.last_node_of_first]);
    Node close;
    close.call = open.call, close.record = record;
    close.before = placed;
    on_stream(r, close);
  }

  void find_partners() {
    for (const auto& [key, who] : meetings_)
      for (int a : who)
        for (int b : who)
          if (a != b) nodes_[static_cast<std::size_t>(a)].partners.push_back(b);
  }

  // --- Time
  // ----------------------------------------------------------------------------------------
  Node& node(int i) { return nodes_[static_cast<std::size_t>(i)]; }

  // Times that follow from known times. True if there was one.
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

  // Copies that begin now.
  void grant() {
    for (std::uint32_t rank = 0; rank < job_.classes.size(); ++rank)
      for (int engine = 0; engine < 3; ++engine) {
        bool busy = false;
        int best = -1;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
          const Node& n = nodes_[i];
          if (n.rank != rank || n.what != Node::What::copy || n.engine != engine ||
              n.ready == unknown || n.ready > now_)
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

  // From now_ to now_ + 1.
  void tick() {
    for (std::uint32_t rank = 0; rank < job_.classes.size(); ++rank) {
      std::vector<Node*> kernels, transfers, others;
      std::uint32_t taken = 0, links[3]{};
      bool waiting = false, copying = false;
      for (Node& n : nodes_) {
        if (n.rank != rank || n.what == Node::What::nothing) continue;
        bool running = n.begin != unknown && n.begin <= now_ && n.local_end == unknown;
        bool resident = n.what == Node::What::communication && n.ready != unknown &&
                        n.ready <= now_ && (n.done == unknown || n.done > now_);
        if (resident) taken += n.share, waiting = true;
        if (!running) continue;
        if (n.what == Node::What::kernel)
          kernels.push_back(&n);
        else if (n.what == Node::What::communication)
          transfers.push_back(&n), ++links[n.link];
        else
          others.push_back(&n), copying |= n.what == Node::What::copy;
      }
      activity_[rank].push_back((kernels.empty() ? 0 : 1) | (waiting ? 2 : 0) | (copying ? 4 : 0));
      std::sort(kernels.begin(), kernels.end(), [](const Node* a, const Node* b) {
        return std::tuple(a->priority, a->begin, a->call, a->chain) <
               std::tuple(b->priority, b->begin, b->call, b->chain);
      });
      std::uint32_t left = one - std::min(taken, model_.max_communication_share);
      for (Node* n : kernels) {
        std::uint32_t got = std::min(left, n->share);
        left -= got;
        std::uint64_t rate = (std::uint64_t{got} << one_shift) / n->share;
        if (!transfers.empty()) rate = rate * model_.transfer_rate >> one_shift;
        n->work -= static_cast<std::int64_t>(rate);
      }
      for (Node* n : transfers) {
        std::uint32_t rate = kernels.empty() ? one : model_.communication_rate;
        if (model_.share_links && n->link < 2) rate /= links[n->link];
        n->work -= rate;
      }
      for (Node* n : others) n->work -= one;
      for (Node& n : nodes_)
        if (n.rank == rank && n.begin != unknown && n.begin <= now_ && n.local_end == unknown &&
            n.work <= 0)
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
  const estimate::Estimator& estimator_;
  const network::Network& network_;
  std::vector<Node> nodes_;
  std::vector<Call> calls_;
  std::uint32_t rank_{};
  std::int64_t now_{};
  std::map<std::uint16_t, StreamState> streams_;
  std::vector<int> legacy_;
  std::map<std::tuple<std::uint64_t, int, int, int>, std::vector<int>> meetings_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, int, bool>, int> sequence_;
  std::vector<simulate::Breakdown> breakdown_;
  std::vector<std::vector<unsigned>> activity_;
};

}  // namespace

SlowResult simulate_slowly(const job::Job& job, const catalog::Cluster& cluster,
                           const estimate::Estimator& estimator, const network::Network& network) {
  return Slow(job, cluster, estimator, network).run();
}

}  // namespace maya::testing
