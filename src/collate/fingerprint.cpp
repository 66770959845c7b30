#include "collate/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "collate/hash.h"

namespace maya::collate {
namespace {

using trace::Kind;
using trace::Record;

bool has_op(Kind kind) {
  return kind == Kind::launch || kind == Kind::copy || kind == Kind::fill ||
         kind == Kind::collective || kind == Kind::point_to_point;
}

bool on_stream(Kind kind) {
  return has_op(kind) || kind == Kind::host_function || kind == Kind::graph_launch ||
         kind == Kind::event_record || kind == Kind::stream_wait_event ||
         kind == Kind::stream_synchronize || kind == Kind::stream_create;
}

Status check(const trace::Recording& recording, const Record& record, std::string_view where) {
  auto bad = [&](std::string_view what, std::uint64_t index, std::size_t size) {
    return Error{
        fmt::format("rank {}: {} refers to {} {}, but there are only {}: the recording is damaged; "
                    "record again",
                    recording.identity.rank, where, what, index, size)};
  };
  if (record.kind > Kind::tensor_release)  // the last there is
    return Error{fmt::format(
        "rank {}: {} is of unknown kind {}: the recording is damaged, or of a newer Maya",
        recording.identity.rank, where, static_cast<int>(record.kind))};
  if (has_op(record.kind) && record.value >= recording.ops.size())
    return bad("op", record.value, recording.ops.size());
  if (record.kind == Kind::graph_launch && record.value >= recording.graphs.size())
    return bad("graph", record.value, recording.graphs.size());
  if (record.kind == Kind::collective || record.kind == Kind::point_to_point) {
    if (record.aux >= recording.communicators.size())
      return bad("communicator", record.aux, recording.communicators.size());
    const Work& work = recording.ops[record.value].work;
    bool fits = record.kind == Kind::collective ? std::holds_alternative<Collective>(work)
                                                : std::holds_alternative<PointToPoint>(work);
    if (!fits)
      return Error{
          fmt::format("rank {}: {} is a communication call without a communication op: the "
                      "recording is damaged; record again",
                      recording.identity.rank, where)};
    if (const auto* message = std::get_if<PointToPoint>(&work)) {
      std::int32_t size = recording.communicators[record.aux].size;
      if (message->peer < 0 || message->peer >= size)
        return bad("peer", static_cast<std::uint32_t>(message->peer),
                   static_cast<std::size_t>(size));
    }
  }
  return {};
}

class Pass {
 public:
  explicit Pass(const trace::Recording& recording) : recording_(recording) {
    op_hash_.reserve(recording.ops.size());
    for (const Op& op : recording.ops) op_hash_.push_back(hash_op(op));
    result_.collectives.resize(recording.communicators.size());
  }

  Result<Fingerprint> run() {
    for (std::size_t g = 0; g < recording_.graphs.size(); ++g)
      if (Status ok = graph(g); !ok) return ok.error();
    const auto& records = recording_.records;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Record& r = records[i];
      if (r.kind == Kind::wide) {
        wide_ = &r;
        continue;
      }
      if (!check(recording_, r, "record"))  // formats the message only if there is an error
        return check(recording_, r, fmt::format("record {}", i)).error();
      take(r);
      wide_ = nullptr;
    }
    for (Thread& thread : threads_) close_group(thread);  // a recording may end within a group
    std::uint64_t h = recording_.communicators.size();
    for (const Thread& thread : threads_) h = mix(h, thread.hash);
    for (const auto& communicator : recording_.communicators)
      h = mix(h, static_cast<std::uint64_t>(communicator.size));
    result_.hash = h;
    result_.devices = busy_devices();
    return std::move(result_);
  }

 private:
  struct Thread {
    std::uint64_t hash{1};
    std::uint32_t events{}, streams{};
    int group{};                   // depth
    std::vector<Record> messages;  // of the group
  };

  Status graph(std::size_t index) {
    const trace::Graph& graph = recording_.graphs[index];
    std::uint64_t h = graph.nodes.size();
    std::vector<Record> calls;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const trace::GraphNode& node = graph.nodes[n];
      std::string where = fmt::format("node {} of graph {}", n, index);
      if (node.record.kind == Kind::graph_launch)
        return Error{
            fmt::format("rank {}: {} launches a graph; child graphs must be expanded when "
                        "recorded",
                        recording_.identity.rank, where)};
      if (Status ok = check(recording_, node.record, where); !ok) return ok;
      h = mix(h, static_cast<std::uint64_t>(node.record.kind));
      if (has_op(node.record.kind)) h = mix(h, op_hash_[node.record.value]);
      for (std::uint32_t before : node.after) {
        if (before >= n)
          return Error{
              fmt::format("rank {}: {} waits for node {}, which does not come before it: the "
                          "recording is damaged; record again",
                          recording_.identity.rank, where, before)};
        h = mix(h, before);
      }
      if (node.record.kind == Kind::collective || node.record.kind == Kind::point_to_point)
        calls.push_back(node.record);
    }
    graph_hash_.push_back(h);
    graph_calls_.push_back(std::move(calls));
    return {};
  }

  void take(const Record& r) {
    if (r.kind == Kind::none || r.kind == Kind::host_gap || r.kind >= Kind::tensor_allocate) return;
    // Default streams have a stream_create record on all devices except the first. Ignore them, so
    // that ranks on different devices compare equal.
    if (r.kind == Kind::stream_create && (r.flags & trace::legacy) != 0) {
      device_of_stream_[r.stream] = device(r.value);
      return;
    }
    Thread& thread = this->thread(r.thread);
    std::uint64_t head = static_cast<std::uint64_t>(r.kind) |
                         static_cast<std::uint64_t>(r.flags & ~trace::resumed) << 8 |
                         static_cast<std::uint64_t>(r.aux) << 16 |
                         (on_stream(r.kind) ? stream(r) << 32 : 0);
    // The id of a default stream is the number of its device.
    if ((r.flags & trace::legacy) != 0 && on_stream(r.kind) &&
        !device_of_stream_.contains(r.stream))
      device_of_stream_[r.stream] = device(r.stream);
    if (has_op(r.kind) || r.kind == Kind::graph_launch) ++works_[device_of(r.stream)];
    switch (r.kind) {
      case Kind::range_push:
      case Kind::range_pop:
      case Kind::mark:
      case Kind::event_query:
        return;
      case Kind::launch:
      case Kind::copy:
      case Kind::fill:
        thread.hash = mix(thread.hash, head ^ op_hash_[r.value]);
        return;
      case Kind::point_to_point:
        if (thread.group > 0) {
          thread.messages.push_back(r);
          return;
        }
        [[fallthrough]];
      case Kind::collective:
        thread.hash = mix(thread.hash, mix(head, op_hash_[r.value] + call(r)));
        return;
      case Kind::group_begin:
        ++thread.group;
        return;
      case Kind::group_end:
        if (thread.group > 0 && --thread.group == 0) close_group(thread);
        return;
      case Kind::graph_launch: {
        std::uint64_t h = mix(head, graph_hash_[r.value]);
        for (const Record& node : graph_calls_[r.value]) h = mix(h, call(node));
        thread.hash = mix(thread.hash, h);
        return;
      }
      case Kind::event_record:
      case Kind::stream_wait_event:
      case Kind::event_synchronize:
        thread.hash = mix(thread.hash, head ^ mix(7, event(r)));
        return;
      case Kind::allocate:
      case Kind::release:
        // Host memory does not influence the device, and differs between ranks that log and ranks
        // that do not.
        if (wide_ != nullptr) {
          auto wide = std::bit_cast<trace::Wide>(*wide_);
          if (wide.x == static_cast<std::uint32_t>(trace::MemoryKind::pinned)) return;
          thread.hash = mix(thread.hash, mix(head, wide.y));
        }
        return;
      case Kind::stream_create:
        device_of_stream_[r.stream] = device(r.value);
        thread.hash = mix(thread.hash, mix(head, device(r.value)));
        return;
      case Kind::device_synchronize:
        thread.hash = mix(thread.hash, r.value == 0 ? head : mix(head, device(r.value - 1)));
        return;
      default:
        thread.hash = mix(thread.hash, head);
    }
  }

  // Devices are numbered in order of first appearance, because the device of a process depends on
  // its local rank.
  std::uint64_t device(std::uint32_t number) {
    return devices_.try_emplace(number, devices_.size()).first->second;
  }

  std::uint64_t device_of(std::uint16_t stream) const {
    constexpr std::uint64_t unknown_device = UINT64_MAX;
    const auto found = device_of_stream_.find(stream);
    return found != device_of_stream_.end() ? found->second : unknown_device;
  }

  // The number of GPUs that the process uses. A GPU with hardly any work does not count: ranks
  // often create a tensor on GPU 0 before they select their own.
  std::int32_t busy_devices() const {
    std::uint64_t busiest = 0;
    for (const auto& [device, works] : works_) busiest = std::max(busiest, works);
    const auto count = std::count_if(works_.begin(), works_.end(),
                                     [&](const auto& w) { return 20 * w.second >= busiest; });
    return std::max<std::int32_t>(1, static_cast<std::int32_t>(count));
  }

  // Messages of a group are sent together, so their order does not matter. They are sorted by the
  // distance of the peer. An all-to-all exchange is then the same on every rank, regardless of the
  // order in which the peers are named.
  void close_group(Thread& thread) {
    auto distance = [&](const Record& r) {
      const trace::Communicator& c = recording_.communicators[r.aux];
      return (std::get<PointToPoint>(recording_.ops[r.value].work).peer - c.rank + c.size) % c.size;
    };
    std::stable_sort(thread.messages.begin(), thread.messages.end(),
                     [&](const Record& a, const Record& b) {
                       return std::tuple(a.stream, a.aux, distance(a)) <
                              std::tuple(b.stream, b.aux, distance(b));
                     });
    for (const Record& r : thread.messages)
      thread.hash = mix(thread.hash, mix(stream(r) << 8 | (r.flags & ~trace::resumed),
                                         op_hash_[r.value] + call(r)));
    thread.hash = mix(thread.hash, thread.messages.size());
    thread.messages.clear();
  }

  // Threads are numbered in order of first appearance, because their ids depend on the process.
  Thread& thread(std::uint16_t id) {
    if (id >= thread_number_.size()) thread_number_.resize(id + 1u, -1);
    if (thread_number_[id] < 0) {
      thread_number_[id] = static_cast<int>(threads_.size());
      threads_.emplace_back();
    }
    return threads_[static_cast<std::size_t>(thread_number_[id])];
  }

  // Streams are numbered in order of first appearance within the thread that first used them.
  std::uint64_t stream(const Record& r) {
    if (r.stream >= stream_number_.size()) stream_number_.resize(r.stream + 1u, 0);
    std::uint32_t& number = stream_number_[r.stream];
    if (number == 0) {
      Thread& t = thread(r.thread);
      number = static_cast<std::uint32_t>(&t - threads_.data()) << 16 | ++t.streams;
    }
    return number;
  }

  // Events are numbered within the thread that first used them, so that the numbers do not depend
  // on the interleaving of threads.
  std::uint64_t event(const Record& r) {
    auto [it, fresh] = events_.try_emplace(r.value, 0);
    if (fresh) {
      Thread& t = thread(r.thread);
      it->second = static_cast<std::uint64_t>(&t - threads_.data()) << 32 | ++t.events;
    }
    return it->second;
  }

  std::uint64_t call(const Record& r) {
    const Work& work = recording_.ops[r.value].work;
    if (const auto* op = std::get_if<Collective>(&work)) {
      CollectiveUse& use = result_.collectives[r.aux];
      ++use.count;
      use.hash = mix(use.hash, mix(static_cast<std::uint64_t>(op->kind) << 32 |
                                       static_cast<std::uint32_t>(op->root),
                                   static_cast<std::uint64_t>(op->bytes)));
      return 1;
    }
    const auto& message = std::get<PointToPoint>(work);
    std::uint64_t key = std::uint64_t{r.aux} << 32 | static_cast<std::uint32_t>(message.peer);
    auto [it, fresh] = result_.channel_number.try_emplace(
        key, static_cast<std::uint32_t>(result_.channels.size()));
    if (fresh) result_.channels.push_back({r.aux, message.peer});
    ChannelUse& use = result_.channels[it->second];
    std::uint64_t bytes = static_cast<std::uint64_t>(message.bytes);
    if (message.send) {
      ++use.sends;
      use.send_hash = mix(use.send_hash, bytes);
    } else {
      ++use.receives;
      use.receive_hash = mix(use.receive_hash, bytes);
    }
    return 2 + it->second;
  }

  const trace::Recording& recording_;
  Fingerprint result_;
  std::vector<std::uint64_t> op_hash_, graph_hash_;
  std::vector<std::vector<Record>> graph_calls_;
  std::vector<Thread> threads_;
  std::vector<int> thread_number_;
  std::vector<std::uint32_t> stream_number_;
  std::unordered_map<std::uint32_t, std::uint64_t> events_;
  std::unordered_map<std::uint32_t, std::size_t> devices_;
  std::unordered_map<std::uint16_t, std::uint64_t> device_of_stream_;
  std::unordered_map<std::uint64_t, std::uint64_t> works_;  // by device
  const Record* wide_{};
};

template <class F>
void each_call(const trace::Recording& recording, Kind kind, F&& visit) {
  for (std::uint32_t i = 0; i < recording.records.size(); ++i) {
    const Record& r = recording.records[i];
    if (r.kind == kind) visit(i, r);
    if (r.kind == Kind::graph_launch)
      for (const auto& node : recording.graphs[r.value].nodes)
        if (node.record.kind == kind) visit(i, node.record);
  }
}

}  // namespace

Result<Fingerprint> fingerprint(const trace::Recording& recording) { return Pass(recording).run(); }

std::vector<CommunicatorCall> collective_calls(const trace::Recording& recording,
                                               std::uint16_t slot) {
  std::vector<CommunicatorCall> calls;
  each_call(recording, Kind::collective, [&](std::uint32_t i, const Record& r) {
    if (r.aux == slot) calls.push_back({i, r.value});
  });
  return calls;
}

std::vector<CommunicatorCall> message_calls(const trace::Recording& recording, std::uint16_t slot,
                                            std::int32_t peer, bool send) {
  std::vector<CommunicatorCall> calls;
  each_call(recording, Kind::point_to_point, [&](std::uint32_t i, const Record& r) {
    const auto& message = std::get<PointToPoint>(recording.ops[r.value].work);
    if (r.aux == slot && message.peer == peer && message.send == send)
      calls.push_back({i, r.value});
  });
  return calls;
}

}  // namespace maya::collate
