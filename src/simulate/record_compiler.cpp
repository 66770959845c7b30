#include "simulate/record_compiler.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace maya::simulate {
namespace {

using trace::Kind;
using trace::Record;

Resource resource_of(const Op& op) {
  const auto* copy = std::get_if<Copy>(&op.work);
  if (copy == nullptr) return Resource::compute;
  switch (copy->direction) {
    case CopyDirection::host_to_device:
      return Resource::to_device;
    case CopyDirection::device_to_host:
      return Resource::to_host;
    case CopyDirection::peer:
      return Resource::peer;
    case CopyDirection::host:
      return Resource::free;
    case CopyDirection::device:
      return Resource::compute;  // limited by the GPU's own memory
  }
  return Resource::compute;
}

}  // namespace

WorkTime work_time(const Op& op, const Model& model, const estimate::Estimator& estimator) {
  WorkTime t;
  if (std::holds_alternative<Collective>(op.work) || std::holds_alternative<PointToPoint>(op.work))
    return t;
  const estimate::Estimate e = estimator(op);
  t.ns = std::isfinite(e.ns) ? std::max<std::int64_t>(1, std::llround(std::min(e.ns, 1e13))) : 1;
  t.low_ns = e.low_ns, t.high_ns = e.high_ns;
  t.resource = resource_of(op);
  t.share = model.kernel_share(op);
  t.memory_bound = Model::memory_bound(op.work);
  t.blocks = model.product_blocks(op.work);
  return t;
}

void RecordCompiler::add_graph(const trace::Graph& graph) {
  graphs_.push_back(&graph);
  chains_.push_back(lay_out(graph));
}

void RecordCompiler::begin_instruction(std::uint32_t index, const Record& r) {
  if (r.thread >= threads_.size()) threads_.resize(r.thread + 1u);
  ThreadState& t = threads_[r.thread];
  Instruction in;
  in.record = index;
  in.thread = t.number;
  in.cpu_ns = model_.host_ns(t.gap_ns + (r.kind == Kind::host_gap ? model_.gap_ns(r) : r.host_ns));
  in.call_ns = model_.call_cost(r.kind);
  in.resumed = (r.flags & trace::resumed) != 0 && !program_.instructions.empty();
  t.gap_ns = 0;
  auto number = static_cast<std::uint32_t>(program_.instructions.size());
  if (t.last == none) {
    in.thread = t.number = static_cast<std::uint16_t>(program_.threads.size());
    program_.threads.push_back({number, r.thread});
  } else {
    program_.instructions[t.last].next = number;
  }
  t.last = number;
  in.waits_begin = in.waits_end = static_cast<std::uint32_t>(program_.waits.size());
  program_.instructions.push_back(in);
}

void RecordCompiler::add(std::uint32_t index, const Record& r) {
  if (r.kind == Kind::none || r.kind >= Kind::tensor_allocate) return;
  if (r.kind == Kind::wide) {
    wide_ = r, has_wide_ = true;
    return;
  }
  // What lies before a wait for another thread is an entry of its own.
  const bool sleeps = (r.flags & trace::sleeps) != 0;
  if (r.kind == Kind::host_gap && !sleeps) {
    if (r.thread >= threads_.size()) threads_.resize(r.thread + 1u);
    threads_[r.thread].gap_ns += model_.gap_ns(r);
    return;
  }
  begin_instruction(index, r);
  Group& group = threads_[r.thread].group;
  switch (r.kind) {
    case Kind::launch:
    case Kind::fill:
    case Kind::copy: {
      std::uint32_t lane = lanes_.enter(r.stream, r.flags);
      lanes_.submit(lane, {lanes_.current(), r.value,
                           r.kind == Kind::copy ? ItemKind::copy : ItemKind::kernel});
      if (r.flags & trace::blocking) lanes_.host_waits(lanes_.tail(lane));
      break;
    }
    case Kind::host_function:
      lanes_.submit(lanes_.enter(r.stream, r.flags),
                    {lanes_.current(), 0, ItemKind::host_function});
      break;
    case Kind::collective:
    case Kind::point_to_point:
      if (group.depth > 0) {
        lanes_.instruction().call_ns = 0;  // the launch happens at the end of the group
        group.calls.push_back({index, r.stream, r.aux, r.flags, r.value});
      } else {
        std::uint32_t lane = lanes_.enter(r.stream, r.flags);
        lanes_.submit(lane, {lanes_.current(), communication(index, r.aux, {&r.value, 1}),
                             ItemKind::communication});
        if (r.flags & trace::blocking) lanes_.host_waits(lanes_.tail(lane));
      }
      break;
    case Kind::group_begin:
      ++group.depth;
      break;
    case Kind::group_end:
      if (group.depth > 0 && --group.depth == 0) flush(group);
      break;
    case Kind::graph_launch:
      launch_graph(r);
      break;
    case Kind::event_record: {
      std::uint32_t lane = lanes_.enter(r.stream, r.flags);
      std::uint32_t ticket = events_[r.value] = lanes_.new_ticket();
      lanes_.record(lane, ticket);
      break;
    }
    case Kind::stream_wait_event: {
      auto it = events_.find(r.value);
      if (it == events_.end()) break;  // never recorded: as in CUDA, there is no wait
      lanes_.wait_on(lanes_.enter(r.stream, r.flags), it->second);
      break;
    }
    case Kind::event_synchronize: {
      auto it = events_.find(r.value);
      if (it != events_.end()) lanes_.host_waits(it->second);
      break;
    }
    case Kind::stream_synchronize: {
      std::uint32_t lane = lanes_.of_stream(r.stream, r.flags);
      lanes_.host_waits(lanes_.tail(lane));
      if (r.flags & trace::legacy) lanes_.host_waits_for_blocking_streams_of(lane);
      break;
    }
    case Kind::device_synchronize:
      lanes_.host_waits_for_device(r.value);
      break;
    case Kind::stream_create:
      lanes_.create_stream(r);
      break;
    case Kind::release:
      if (!(r.flags & trace::async) && frees_device_memory()) lanes_.host_waits_for_device(0);
      break;
    default:
      break;
  }
  has_wide_ = false;
}

bool RecordCompiler::frees_device_memory() const {
  if (!has_wide_) return true;
  auto wide = std::bit_cast<trace::Wide>(wide_);
  return wide.x == static_cast<std::uint32_t>(trace::MemoryKind::device) ||
         wide.x == static_cast<std::uint32_t>(trace::MemoryKind::managed);
}

// The calls of one communicator on one stream within a group are one launch.
void RecordCompiler::flush(Group& group) {
  std::vector<Group::Call> calls;
  calls.swap(group.calls);
  std::vector<bool> taken(calls.size());
  std::vector<std::uint32_t> ops;
  if (calls.empty()) lanes_.instruction().call_ns = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (taken[i]) continue;
    ops.clear();
    std::uint8_t flags = 0;
    for (std::size_t j = i; j < calls.size(); ++j)
      if (!taken[j] && calls[j].stream == calls[i].stream && calls[j].slot == calls[i].slot) {
        ops.push_back(calls[j].op);
        flags |= calls[j].flags;
        taken[j] = true;
      }
    std::uint32_t lane = lanes_.enter(calls[i].stream, flags);
    lanes_.submit(lane, {lanes_.current(), communication(calls[i].record, calls[i].slot, ops),
                         ItemKind::communication});
    if (flags & trace::blocking) lanes_.host_waits(lanes_.tail(lane));
  }
}

void RecordCompiler::launch_graph(const Record& r) {
  const trace::Graph& graph = *graphs_[r.value];
  const GraphChains& chains = chains_[r.value];
  std::uint32_t lane = lanes_.enter(r.stream, r.flags);
  if (chains.chains == 0) return;
  lanes_.also(lane);
  const std::uint32_t call = lanes_.current();
  if (chains.last_node_of_first != none) lanes_.instruction().queue_place = lanes_.take_place(lane);
  std::vector<std::uint32_t> at{lane};
  for (std::uint32_t c = 1; c < chains.chains; ++c) at.push_back(lanes_.chain(lane, c));
  if (chains.chains > 1) {
    std::uint32_t start = lanes_.new_ticket();
    lanes_.push(lane, {call, start, ItemKind::record});
    for (std::uint32_t c = 1; c < chains.chains; ++c) lanes_.wait_on(at[c], start);
  }
  std::uint32_t base = program_.tickets;
  for (std::uint32_t t = 0; t < chains.tickets; ++t) lanes_.new_ticket();
  bool first = true;
  for (const ChainEntry& entry : chains.entries) {
    std::uint32_t to = at[entry.chain];
    if (entry.what != ChainEntry::What::node) {
      lanes_.push(to, {call, base + entry.index,
                       entry.what == ChainEntry::What::record ? ItemKind::record : ItemKind::wait});
      continue;
    }
    const Record& node = graph.nodes[entry.index].record;
    Item item{call, node.value, ItemKind::kernel, !first};
    item.closes = entry.index == chains.last_node_of_first;
    switch (node.kind) {
      case Kind::launch:
      case Kind::fill:
        break;
      case Kind::copy:
        item.kind = ItemKind::copy;
        break;
      case Kind::host_function:
        item.kind = ItemKind::host_function;
        break;
      case Kind::collective:
      case Kind::point_to_point:
        item.kind = ItemKind::communication;
        item.index = communication(lanes_.instruction().record, node.aux, {&node.value, 1});
        break;
      default:  // an empty node only has dependencies
        continue;
    }
    first = false;
    lanes_.push(to, item);
    ++program_.works;
  }
  for (std::uint32_t c = 1; c < chains.chains; ++c) {
    std::uint32_t end = lanes_.tail(at[c]);
    lanes_.push(lane, {call, end, ItemKind::wait});
  }
}

void RecordCompiler::forget() {
  program_.instructions.clear();
  program_.threads.clear();
  program_.waits.clear();
  program_.lane_lists.clear();
  program_.tickets = 0;
  program_.ticket_step.clear();
  program_.communications.clear();
  for (LaneProgram& lane : program_.lanes) lane.items.clear();
  for (ThreadState& thread : threads_) thread.last = none;
  events_.clear();
  lanes_.forget();
}

}  // namespace maya::simulate
