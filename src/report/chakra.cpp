// MLCommons Chakra execution traces (schema/protobuf/et_def.proto), as ASTRA-sim's feeder reads
// them: a GlobalMetadata message, then one Node message each, all length-delimited. One file per
// rank.
//
// The measured steps are written. Every call of a host thread that issues device work is a CPU
// node, chained per thread; the work itself is a node that waits for its call, for the work before
// it on its stream, and for the events its stream waits for. A host call that waits (a synchronize)
// makes its thread's next node wait for the same. Communicators are numbered from 1 (`pg_name`),
// the numbers that comm_groups.json explains.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <unordered_map>

#include "maya/report.h"
#include "report/scene.h"
#include "report/usage.h"

namespace maya::report {
namespace {

using protozero::pbf_writer;

enum NodeType : std::int32_t { computation = 4, send = 5, receive = 6, collective_node = 7 };

std::int64_t collective_type(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 0;
    case CollectiveKind::reduce:
      return 1;
    case CollectiveKind::all_gather:
      return 2;
    case CollectiveKind::gather:
      return 3;
    case CollectiveKind::scatter:
      return 4;
    case CollectiveKind::broadcast:
      return 5;
    case CollectiveKind::all_to_all:
      return 6;
    case CollectiveKind::reduce_scatter:
      return 7;
    case CollectiveKind::barrier:
      return 0;  // NCCL implements it as an all-reduce of one element, which simulators support
  }
  return 0;
}

std::uint64_t microseconds(std::int64_t ns) {
  return ns <= 0 ? 0 : std::max<std::int64_t>(1, (ns + 500) / 1000);
}

bool is_everybody(const job::Job& job, std::size_t communicator) {
  const auto& ranks = job.communicators[communicator].ranks;
  return static_cast<std::int32_t>(ranks.size()) == job.world_size &&
         std::is_sorted(ranks.begin(), ranks.end());
}

class Writer {
 public:
  Writer(const job::Job& job, const simulate::Timeline& timeline, std::int32_t rank)
      : job_(job),
        rank_(rank),
        class_(job.class_of_rank[rank]),
        recording_(job.classes[class_].recording) {
    for (const simulate::Span& span : timeline.spans)
      if (span.rank_class == class_) durations_[key(span.record, span.op)].push_back(&span);
    for (const simulate::HostSpan& span : timeline.host_spans)
      if (span.rank_class == class_ && !span.waiting)
        host_ns_[span.record] += span.end_ns - span.start_ns;
    for (std::size_t i = 0; i < job.communicators.size(); ++i) {
      const job::Communicator& one = job.communicators[i];
      for (std::size_t k = 0; k < one.ranks.size() && k < one.slots.size(); ++k)
        if (one.ranks[k] == rank) group_of_slot_[one.slots[k]] = i;
    }
  }

  std::string write() {
    std::string metadata;
    {
      pbf_writer message(metadata);
      message.add_string(1, "0.0.4");
    }
    append(metadata);
    const std::vector<Range> steps = measured_steps(job_, job_.classes[class_]);
    for (const Range& step : steps)
      for (std::uint32_t i = step.begin; i < step.end; ++i) record(i);
    return std::move(bytes_);
  }

 private:
  using Deps = std::vector<std::uint64_t>;
  static std::uint64_t key(std::uint32_t record, std::uint32_t op) {
    return std::uint64_t{record} << 32 | op;
  }

  void append(const std::string& message) {
    protozero::write_varint(std::back_inserter(bytes_), message.size());
    bytes_ += message;
  }

  void record(std::uint32_t index) {
    const trace::Record& r = recording_.records[index];
    switch (r.kind) {
      case trace::Kind::launch:
      case trace::Kind::copy:
      case trace::Kind::fill:
      case trace::Kind::collective:
      case trace::Kind::point_to_point: {
        Deps deps = stream_deps(r.stream, r.flags);
        deps.push_back(host_call(index, r.thread));
        const std::uint64_t node = device_node(index, r, deps);
        last_of_stream_[r.stream] = node;
        if (r.flags & trace::blocking) wait_of_thread_[r.thread].push_back(node);
        break;
      }
      case trace::Kind::graph_launch:
        graph(index, r);
        break;
      case trace::Kind::event_record:
        if (auto last = last_of_stream_.find(r.stream); last != last_of_stream_.end())
          event_[r.value] = last->second;
        else
          event_.erase(r.value);
        break;
      case trace::Kind::stream_wait_event:
        if (auto event = event_.find(r.value); event != event_.end())
          wait_of_stream_[r.stream].push_back(event->second);
        break;
      case trace::Kind::event_synchronize:
        if (auto event = event_.find(r.value); event != event_.end())
          wait_of_thread_[r.thread].push_back(event->second);
        break;
      case trace::Kind::stream_synchronize:
        if (auto last = last_of_stream_.find(r.stream); last != last_of_stream_.end())
          wait_of_thread_[r.thread].push_back(last->second);
        break;
      case trace::Kind::device_synchronize:
        for (const auto& [stream, last] : last_of_stream_)
          wait_of_thread_[r.thread].push_back(last);
        break;
      default:
        break;
    }
  }

  Deps stream_deps(std::uint16_t stream, std::uint8_t flags) {
    Deps deps;
    if (flags & trace::legacy)  // the legacy default stream waits for everything
      for (const auto& [other, last] : last_of_stream_) deps.push_back(last);
    else if (auto last = last_of_stream_.find(stream); last != last_of_stream_.end())
      deps.push_back(last->second);
    Deps& waits = wait_of_stream_[stream];
    deps.insert(deps.end(), waits.begin(), waits.end());
    waits.clear();
    return deps;
  }

  // The CPU node of a call. It depends on the thread's previous call and on what that waited for.
  std::uint64_t host_call(std::uint32_t index, std::uint16_t thread) {
    Deps deps = std::move(wait_of_thread_[thread]);
    wait_of_thread_[thread].clear();
    if (auto last = last_of_thread_.find(thread); last != last_of_thread_.end())
      deps.push_back(last->second);
    const trace::Record& r = recording_.records[index];
    auto span = host_ns_.find(index);
    const std::int64_t ns = span != host_ns_.end() ? span->second : r.host_ns;
    const std::uint64_t id = next_++;
    node(id, std::string(trace::name(r.kind)), computation, deps, ns,
         [](pbf_writer& message) { flag(message, "is_cpu_op", true); });
    last_of_thread_[thread] = id;
    return id;
  }

  void graph(std::uint32_t index, const trace::Record& r) {
    Deps before = stream_deps(r.stream, r.flags);
    before.push_back(host_call(index, r.thread));
    if (r.value >= recording_.graphs.size()) return;
    const trace::Graph& graph = recording_.graphs[r.value];
    std::vector<Deps> ends(graph.nodes.size());  // dependencies on each node, through empty nodes
    std::set<std::uint64_t> open;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      Deps deps;
      for (std::uint32_t after : graph.nodes[i].after)
        if (after < i) deps.insert(deps.end(), ends[after].begin(), ends[after].end());
      if (deps.empty()) deps = before;
      const trace::Record& inner = graph.nodes[i].record;
      const bool is_work =
          inner.kind >= trace::Kind::launch && inner.kind <= trace::Kind::point_to_point;
      if (is_work) {
        for (std::uint64_t dep : deps) open.erase(dep);
        ends[i] = {device_node(index, inner, deps)};
        open.insert(ends[i][0]);
      } else {
        ends[i] = std::move(deps);
      }
    }
    if (open.empty()) return;
    last_of_stream_[r.stream] = *open.rbegin();
    Deps& waits = wait_of_stream_[r.stream];
    for (std::uint64_t id : open)
      if (id != *open.rbegin()) waits.push_back(id);
  }

  std::uint64_t device_node(std::uint32_t index, const trace::Record& r, const Deps& deps) {
    const std::uint64_t id = next_++;
    if (r.value >= recording_.ops.size()) {
      node(id, "unknown", computation, deps, 0, [](pbf_writer&) {});
      return id;
    }
    const Op& op = recording_.ops[r.value];
    std::int64_t ns = 0;
    auto& spans = durations_[key(index, r.value)];
    std::size_t& used = used_[key(index, r.value)];
    if (used < spans.size()) ns = spans[used]->end_ns - spans[used]->start_ns, ++used;

    if (const auto* collective = std::get_if<Collective>(&op.work)) {
      node(id, slice_name(op), collective_node, deps, ns, [&](pbf_writer& message) {
        flag(message, "is_cpu_op", false);
        number(message, "comm_type", collective_type(collective->kind));
        number(message, "comm_size", std::max<std::int64_t>(1, collective->bytes));
        text(message, "pg_name", std::to_string(group(r.aux)));
        if (collective->root >= 0) number32(message, "root", collective->root);
      });
    } else if (const auto* p2p = std::get_if<PointToPoint>(&op.work)) {
      const std::int32_t peer = peer_rank(r.aux, p2p->peer);
      // The k-th send of a pair is matched with the k-th receive.
      const std::int32_t tag = tags_[{group(r.aux), peer, p2p->send}]++;
      node(id, slice_name(op), p2p->send ? send : receive, deps, ns, [&](pbf_writer& message) {
        flag(message, "is_cpu_op", false);
        number(message, "comm_size", std::max<std::int64_t>(1, p2p->bytes));
        number32(message, "comm_src", p2p->send ? rank_ : peer);
        number32(message, "comm_dst", p2p->send ? peer : rank_);
        number32(message, "comm_tag", tag);
        text(message, "pg_name", std::to_string(group(r.aux)));
      });
    } else {
      node(id, slice_name(op), computation, deps, ns, [&](pbf_writer& message) {
        flag(message, "is_cpu_op", false);
        number(message, "num_ops", static_cast<std::int64_t>(flops(op.work)));
        pbf_writer attribute(message, 10);
        attribute.add_string(1, "tensor_size");
        attribute.add_uint64(13, static_cast<std::uint64_t>(bytes_moved(op.work)));
      });
    }
    return id;
  }

  // Readers of Chakra traces use 0 for all ranks.
  std::int32_t group(std::uint32_t slot) const {
    auto found = group_of_slot_.find(slot);
    if (found == group_of_slot_.end() || is_everybody(job_, found->second)) return 0;
    return static_cast<std::int32_t>(found->second) + 1;
  }

  std::int32_t peer_rank(std::uint32_t slot, std::int32_t peer) const {
    auto found = group_of_slot_.find(slot);
    if (found == group_of_slot_.end()) return peer;
    const auto& ranks = job_.communicators[found->second].ranks;
    return peer >= 0 && peer < static_cast<std::int32_t>(ranks.size()) ? ranks[peer] : peer;
  }

  template <class Fill>
  void node(std::uint64_t id, const std::string& name, NodeType type, Deps deps, std::int64_t ns,
            Fill&& fill) {
    std::string bytes;
    {
      pbf_writer message(bytes);
      message.add_uint64(1, id);
      message.add_string(2, name);
      message.add_enum(3, type);
      std::sort(deps.begin(), deps.end());
      deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
      if (!deps.empty()) message.add_packed_uint64(5, deps.begin(), deps.end());
      message.add_uint64(7, microseconds(ns));
      fill(message);
    }
    append(bytes);
  }

  static void flag(pbf_writer& message, const char* name, bool value) {
    pbf_writer attribute(message, 10);
    attribute.add_string(1, name);
    attribute.add_bool(27, value);
  }
  static void number(pbf_writer& message, const char* name, std::int64_t value) {
    pbf_writer attribute(message, 10);
    attribute.add_string(1, name);
    attribute.add_int64(9, value);
  }
  static void number32(pbf_writer& message, const char* name, std::int32_t value) {
    pbf_writer attribute(message, 10);
    attribute.add_string(1, name);
    attribute.add_int32(7, value);
  }
  static void text(pbf_writer& message, const char* name, const std::string& value) {
    pbf_writer attribute(message, 10);
    attribute.add_string(1, name);
    attribute.add_string(29, value);
  }

  const job::Job& job_;
  std::int32_t rank_;
  std::uint32_t class_;
  const trace::Recording& recording_;
  std::string bytes_;
  std::uint64_t next_{0};
  std::unordered_map<std::uint64_t, std::vector<const simulate::Span*>> durations_;
  std::unordered_map<std::uint64_t, std::size_t> used_;
  std::unordered_map<std::uint32_t, std::int64_t> host_ns_;
  std::map<std::uint32_t, std::size_t> group_of_slot_;
  std::map<std::uint16_t, std::uint64_t> last_of_stream_, last_of_thread_;
  std::map<std::uint16_t, Deps> wait_of_stream_, wait_of_thread_;
  std::unordered_map<std::uint32_t, std::uint64_t> event_;
  std::map<std::tuple<std::int32_t, std::int32_t, bool>, std::int32_t> tags_;
};

}  // namespace

std::string chakra_trace(const job::Job& job, const simulate::Timeline& timeline,
                         std::int32_t rank) {
  if (rank < 0 || rank >= static_cast<std::int32_t>(job.class_of_rank.size())) return {};
  return Writer(job, timeline, rank).write();
}

std::string chakra_groups(const job::Job& job) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < job.communicators.size(); ++i)
    if (!is_everybody(job, i)) groups[std::to_string(i + 1)] = job.communicators[i].ranks;
  return groups.dump(1) + "\n";
}

}  // namespace maya::report
