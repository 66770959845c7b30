// Builds recordings in tests, record by record:
//
//   RecordingBuilder r(0, 2);                       // rank 0 of 2
//   auto world = r.communicator(7, {0, 1});
//   r.kernel(1000).on(1).collective(world, 500);    // ops whose durations are their sizes
//   trace::Recording recording = r.done();
#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "maya/trace.h"

namespace maya::testing {

class RecordingBuilder {
 public:
  using Kind = trace::Kind;
  using Record = trace::Record;

  explicit RecordingBuilder(std::int32_t rank = 0, std::int32_t world_size = 1) {
    recording_.identity.rank = rank;
    recording_.identity.world_size = world_size;
    recording_.complete = true;
  }

  // Stream and thread of the following records, and the host time before each.
  RecordingBuilder& on(std::uint16_t stream) {
    stream_ = stream;
    return *this;
  }
  RecordingBuilder& thread(std::uint16_t thread) {
    thread_ = thread;
    return *this;
  }
  RecordingBuilder& host(std::uint32_t ns) {
    host_ns_ = ns;
    return *this;
  }
  RecordingBuilder& flags(int flags) {
    flags_ = static_cast<std::uint8_t>(flags);
    return *this;
  }  // of the next only

  std::uint32_t op(Op op) {
    recording_.ops.push_back(std::move(op));
    return static_cast<std::uint32_t>(recording_.ops.size() - 1);
  }
  // Equal ops share one entry, as in a real recording.
  std::uint32_t kernel_op(std::int64_t ns, const std::string& name = "k",
                          std::uint32_t blocks = 0) {
    for (std::uint32_t i = 0; i < recording_.ops.size(); ++i) {
      const auto* other = std::get_if<OtherKernel>(&recording_.ops[i].work);
      if (other != nullptr && other->bytes_touched == ns && recording_.ops[i].name == name &&
          recording_.ops[i].geometry.grid[0] == blocks)
        return i;
    }
    Op made{OtherKernel{0, ns}, name};
    if (blocks > 0) made.geometry.grid = {blocks, 1, 1}, made.geometry.block = {1024, 1, 1};
    return op(made);
  }

  RecordingBuilder& add(Kind kind, std::uint32_t value = 0, std::uint16_t aux = 0) {
    recording_.records.push_back({kind, flags_, thread_, host_ns_, stream_, aux, value});
    flags_ = 0;
    return *this;
  }
  RecordingBuilder& kernel(std::int64_t ns, const std::string& name = "k",
                           std::uint32_t blocks = 0) {
    return add(Kind::launch, kernel_op(ns, name, blocks));
  }
  RecordingBuilder& optimizer(std::int64_t ns) {
    for (std::uint32_t i = 0; i < recording_.ops.size(); ++i)
      if (const auto* other = std::get_if<OptimizerStep>(&recording_.ops[i].work);
          other && other->elements == ns)
        return add(Kind::launch, i);
    return add(Kind::launch, op({OptimizerStep{OptimizerKind::adam, ns}, "adam"}));
  }
  RecordingBuilder& copy(std::int64_t ns, CopyDirection direction) {
    return add(Kind::copy, op({Copy{ns, direction, true}, "copy"}));
  }
  RecordingBuilder& collective(std::uint16_t communicator, std::int64_t ns,
                               CollectiveKind kind = CollectiveKind::all_reduce) {
    return add(Kind::collective, op({Collective{kind, ns}, "collective"}), communicator);
  }
  RecordingBuilder& send(std::uint16_t communicator, std::int32_t peer, std::int64_t ns) {
    return add(Kind::point_to_point, op({PointToPoint{true, ns, peer}, "send"}), communicator);
  }
  RecordingBuilder& receive(std::uint16_t communicator, std::int32_t peer, std::int64_t ns) {
    return add(Kind::point_to_point, op({PointToPoint{false, ns, peer}, "receive"}), communicator);
  }
  RecordingBuilder& record(std::uint32_t event) { return add(Kind::event_record, event); }
  RecordingBuilder& wait(std::uint32_t event) { return add(Kind::stream_wait_event, event); }
  RecordingBuilder& sync() { return add(Kind::stream_synchronize); }
  RecordingBuilder& device_sync() { return add(Kind::device_synchronize); }
  RecordingBuilder& create_stream(std::uint16_t stream, bool non_blocking = true, int priority = 0,
                                  std::uint32_t device = 0) {
    recording_.records.push_back(
        {Kind::stream_create, static_cast<std::uint8_t>(non_blocking ? trace::non_blocking : 0),
         thread_, 0, stream, static_cast<std::uint16_t>(priority + 1000), device});
    return *this;
  }
  RecordingBuilder& wide(Kind kind, trace::MemoryKind memory, std::uint64_t bytes,
                         std::uint32_t allocation = 0) {
    recording_.records.push_back(std::bit_cast<Record>(
        trace::Wide{Kind::wide, 0, thread_, static_cast<std::uint32_t>(memory), bytes}));
    return add(kind, allocation);
  }
  std::uint32_t string(const std::string& text) {
    auto it = std::find(recording_.strings.begin(), recording_.strings.end(), text);
    if (it == recording_.strings.end()) it = recording_.strings.insert(it, text);
    return static_cast<std::uint32_t>(it - recording_.strings.begin());
  }
  RecordingBuilder& push(const std::string& name) { return add(Kind::range_push, string(name)); }
  RecordingBuilder& pop() { return add(Kind::range_pop); }

  // `ranks` are the members as ranks of the job. This rank must be one of them.
  std::uint16_t communicator(std::uint64_t id, const std::vector<std::int32_t>& ranks) {
    auto own = std::find(ranks.begin(), ranks.end(), recording_.identity.rank) - ranks.begin();
    recording_.communicators.push_back(
        {id, static_cast<std::int32_t>(own), static_cast<std::int32_t>(ranks.size()), 0, ""});
    return static_cast<std::uint16_t>(recording_.communicators.size() - 1);
  }
  // Each node is a record and the nodes it depends on.
  std::uint32_t graph(std::vector<trace::GraphNode> nodes) {
    recording_.graphs.push_back({std::move(nodes)});
    return static_cast<std::uint32_t>(recording_.graphs.size() - 1);
  }
  trace::GraphNode node(std::int64_t ns, std::vector<std::uint32_t> after = {}) {
    Record r;
    r.kind = Kind::launch;
    r.value = kernel_op(ns);
    return {r, std::move(after)};
  }

  trace::Recording& recording() { return recording_; }
  trace::Recording done() { return std::move(recording_); }

 private:
  trace::Recording recording_;
  std::uint16_t stream_{}, thread_{};
  std::uint32_t host_ns_{};
  std::uint8_t flags_{};
};

}  // namespace maya::testing
