#include "simulate/testing/slow_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "simulate/graph_chains.h"

namespace maya::testing {
namespace {

using simulate::Model;
using simulate::one_shift;
using trace::Kind;
using trace::Record;

class Writing {
 public:
  Writing(const job::Job& job, const Model& model, const estimate::Estimator& estimator,
          const network::Network& network)
      : job_(job), model_(model), estimator_(estimator), network_(network) {}

  SlowPlan run() {
    for (rank_ = 0; rank_ < job_.classes.size(); ++rank_) write_down_rank();
    find_partners();
    return {std::move(nodes_), std::move(calls_)};
  }

 private:
  struct StreamState {
    std::vector<int> nodes;
    std::vector<int> submissions;
    bool non_blocking{}, legacy{};
    std::int32_t priority{};
    std::uint32_t device{};
  };

  int add(Node node) {
    node.rank = rank_;
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size() - 1);
  }

  // Adds a node at the end of a stream, ordered with the legacy default stream.
  int on_stream(const Record& r, Node node) {
    StreamState& s = streams_[r.stream];
    s.legacy |= (r.flags & trace::legacy) != 0;
    if (!s.nodes.empty()) node.before.push_back(s.nodes.back());
    if (s.legacy) {
      for (auto& [id, other] : streams_)
        if (other.device == s.device && !other.legacy && !other.non_blocking)
          node.before.insert(node.before.end(), other.nodes.begin(), other.nodes.end());
    } else if (!s.non_blocking) {
      for (int n : legacy_[s.device]) node.before.push_back(n);
    }
    node.priority = s.priority;
    node.device = s.device;
    int index = add(std::move(node));
    s.nodes.push_back(index);
    if (s.legacy) legacy_[s.device].push_back(index);
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
    n.memory_bound = Model::memory_bound(op.work);
    n.blocks = model_.product_blocks(op.work);
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
    double bytes = 0;
    auto count = [&](const network::CollectiveTime& t, const network::Load& load) {
      ns += t.ns, channels = std::max(channels, t.channels);
      bytes += load.bytes;
      for (std::size_t p = 0; p < network::port_count; ++p)
        n.weight[p] += load.weight[p] * load.bytes;
    };
    for (const auto& [key, op] : collectives)
      count(network_.collective(op, c.ranks), network_.load(op, c.ranks, me));
    if (!messages.empty()) count(network_.messages(messages), network_.load(messages, me));
    if (bytes > 0)
      for (double& w : n.weight) w /= bytes;
    n.alone = bytes / static_cast<double>(std::max<std::int64_t>(1, std::llround(ns)));
    n.work = std::max<std::int64_t>(1, std::llround(ns)) << one_shift;
    n.share = model_.channel_share(channels);
    network::Load all{bytes, n.weight};
    n.memory = model_.memory_share(all, std::max<std::int64_t>(1, std::llround(ns)));
    return n;
  }

  void write_down_rank() {
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
      std::uint64_t host = r.host_ns;
      if (r.kind == Kind::host_gap) {
        host = model_.gap_ns(r);
        if ((r.flags & trace::sleeps) == 0) {
          gap[r.thread] += host;
          continue;
        }
      }
      Call call;
      call.rank = rank_, call.record = i;
      call.cpu = model_.host_ns(host + gap[r.thread]);
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
              if (other.device == streams_[r.stream].device && !other.legacy && !other.non_blocking)
                self.waits.insert(self.waits.end(), other.nodes.begin(), other.nodes.end());
          break;
        case Kind::device_synchronize:
          for (auto n = first_node; n < nodes_.size(); ++n)
            if (r.value == 0 || nodes_[n].device + 1 == r.value)
              self.waits.push_back(static_cast<int>(n));
          break;
        case Kind::stream_create:
          streams_[r.stream].non_blocking = r.flags & trace::non_blocking;
          streams_[r.stream].priority = r.aux == 0 ? 0 : r.aux - 1000;
          streams_[r.stream].device = r.value;
          streams_[r.stream].legacy = r.flags & trace::legacy;
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
      n.device = streams_[r.stream].device;
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

  const job::Job& job_;
  const Model& model_;
  const estimate::Estimator& estimator_;
  const network::Network& network_;
  std::vector<Node> nodes_;
  std::vector<Call> calls_;
  std::uint32_t rank_{};
  std::map<std::uint16_t, StreamState> streams_;
  std::map<std::uint32_t, std::vector<int>> legacy_;  // by device
  std::map<std::tuple<std::uint64_t, int, int, int>, std::vector<int>> meetings_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, int, bool>, int> sequence_;
};

}  // namespace

SlowPlan write_down(const job::Job& job, const Model& model, const estimate::Estimator& estimator,
                    const network::Network& network) {
  return Writing(job, model, estimator, network).run();
}

}  // namespace maya::testing
