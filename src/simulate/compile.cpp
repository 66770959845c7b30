#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "simulate/communication_times.h"
#include "simulate/graph_chains.h"
#include "simulate/lanes.h"
#include "simulate/meetings.h"
#include "simulate/program.h"

namespace maya::simulate {
namespace {

using trace::Kind;
using trace::Record;

// A few bytes of a recording can launch a large graph very often: that must not end in exhausted
// memory.
constexpr std::uint64_t most_works = 500'000'000;

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

// Compiles one class. Lanes 0… are streams in order of first use, chains of graphs among them.
class ClassCompiler {
 public:
  ClassCompiler(const job::Job& job, std::uint32_t rank_class, const Model& model,
                const Meetings& meetings, const estimate::Estimator& estimator,
                const network::Network& network, std::vector<MeetReference>& references)
      : job_(job),
        class_(rank_class),
        recording_(job.classes[rank_class].recording),
        model_(model),
        meetings_(meetings),
        estimator_(estimator),
        references_(references),
        lanes_(program_),
        communication_times_(job, rank_class, meetings, network, model,
                             program_.communication_times) {}

  Result<Program> run(std::int64_t log_step) {
    estimate_ops();
    for (const trace::Graph& graph : recording_.graphs) chains_.push_back(lay_out(graph));
    calls_.resize(recording_.communicators.size());
    sends_.resize(job_.classes[class_].channels.size());
    receives_.resize(sends_.size());
    program_.instructions.reserve(recording_.records.size());
    const auto& begins = job_.classes[class_].step_begin;
    std::size_t boundary = 0;
    for (std::uint32_t i = 0; i < recording_.records.size(); ++i) {
      for (; boundary < begins.size() && begins[boundary] <= i; ++boundary)
        close_step(boundary, log_step);
      record(i);
      if (program_.works > most_works)
        return Error{fmt::format(
            "rank {}: its graph launches unfold to more than {} operations by record {}; the "
            "recording is damaged, or too long to simulate: record fewer steps",
            job_.classes[class_].representative, most_works, i)};
    }
    for (; boundary < begins.size(); ++boundary) close_step(boundary, log_step);
    return std::move(program_);
  }

 private:
  struct Group {
    int depth{};
    struct Call {
      std::uint32_t record;
      std::uint16_t stream, slot;
      std::uint8_t flags;
      std::uint32_t op;
    };
    std::vector<Call> calls;
  };

  void estimate_ops() {
    program_.times.resize(recording_.ops.size());
    for (std::size_t i = 0; i < recording_.ops.size(); ++i) {
      const Op& op = recording_.ops[i];
      if (std::holds_alternative<Collective>(op.work) ||
          std::holds_alternative<PointToPoint>(op.work))
        continue;
      const estimate::Estimate e = estimator_(op);
      WorkTime& t = program_.times[i];
      t.ns =
          std::isfinite(e.ns) ? std::max<std::int64_t>(1, std::llround(std::min(e.ns, 1e13))) : 1;
      t.low_ns = e.low_ns, t.high_ns = e.high_ns;
      t.resource = resource_of(op);
      t.share = model_.kernel_share(op);
      t.memory_bound = Model::memory_bound(op.work);
      t.blocks = model_.product_blocks(op.work);
    }
  }

  void begin_instruction(std::uint32_t index, const Record& r) {
    if (r.thread >= threads_.size()) threads_.resize(r.thread + 1u);
    ThreadState& t = threads_[r.thread];
    Instruction in;
    in.record = index;
    in.thread = t.number;
    in.cpu_ns = model_.host_ns(t.gap_ns + r.host_ns);
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

  void record(std::uint32_t index) {
    const Record& r = recording_.records[index];
    if (r.kind == Kind::none || r.kind >= Kind::tensor_allocate) return;
    if (r.kind == Kind::wide) {
      wide_ = &r;
      return;
    }
    if (r.kind == Kind::host_gap) {
      if (r.thread >= threads_.size()) threads_.resize(r.thread + 1u);
      threads_[r.thread].gap_ns += std::uint64_t{r.value} * 1000 + r.host_ns;
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
          lanes_.instruction().call_ns = 0;  // the launch comes with the end of the group
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
        if (it == events_.end()) break;  // never recorded: no wait, as CUDA has it
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
    wide_ = nullptr;
  }

  bool frees_device_memory() const {
    if (wide_ == nullptr) return true;
    auto wide = std::bit_cast<trace::Wide>(*wide_);
    return wide.x == static_cast<std::uint32_t>(trace::MemoryKind::device) ||
           wide.x == static_cast<std::uint32_t>(trace::MemoryKind::managed);
  }

  // Calls of one communicator on one stream within a group are one launch.
  void flush(Group& group) {
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

  std::uint32_t communication(std::uint32_t record, std::uint16_t slot,
                              std::span<const std::uint32_t> ops) {
    Communication c;
    c.time = communication_times_.of(slot, ops);
    c.record = record, c.op = ops[0], c.slot = slot;
    c.first = static_cast<std::uint32_t>(references_.size());
    const Meetings::Domain& domain = meetings_.domain(class_, slot);
    std::uint32_t first_call = calls_[slot];
    for (std::uint32_t op : ops) {
      if (const auto* message = std::get_if<PointToPoint>(&recording_.ops[op].work)) {
        std::uint32_t channel = meetings_.channel(class_, slot, message->peer);
        if (channel == none) continue;
        std::uint32_t n = message->send ? sends_[channel]++ : receives_[channel]++;
        std::uint32_t meet = meetings_.message(class_, channel, message->send, n);
        if (meet != none) references_.push_back({meet});
      } else {
        if (c.number < 0) c.number = domain.number + calls_[slot];
        if (domain.begin != none) references_.push_back({domain.begin + calls_[slot]});
        ++calls_[slot];
      }
    }
    c.last = c.finish_first = static_cast<std::uint32_t>(references_.size());
    if (domain.finish != none)
      for (std::uint32_t n = first_call; n < calls_[slot]; ++n)
        references_.push_back({domain.finish + n});
    c.finish_last = static_cast<std::uint32_t>(references_.size());
    program_.communications.push_back(c);
    return static_cast<std::uint32_t>(program_.communications.size() - 1);
  }

  void launch_graph(const Record& r) {
    const trace::Graph& graph = recording_.graphs[r.value];
    const GraphChains& chains = chains_[r.value];
    std::uint32_t lane = lanes_.enter(r.stream, r.flags);
    if (chains.chains == 0) return;
    lanes_.also(lane);
    const std::uint32_t call = lanes_.current();
    if (chains.last_node_of_first != none)
      lanes_.instruction().queue_place = lanes_.take_place(lane);
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
        lanes_.push(to,
                    {call, base + entry.index,
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
        default:  // an empty node: order only
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

  void close_step(std::size_t boundary, std::int64_t log_step) {
    StepProgram step;
    step.tickets = lanes_.close_step(static_cast<std::uint32_t>(boundary));
    if (!program_.instructions.empty()) {
      step.host = lanes_.current();
      lanes_.instruction().ends_step = true;
    }
    program_.boundaries.push_back(step);
    auto instructions = static_cast<std::uint32_t>(program_.instructions.size());
    auto b = static_cast<std::int64_t>(boundary);
    if (b == log_step) {
      program_.log_begin = program_.log_end = instructions;
      for (LaneProgram& lane : program_.lanes)
        lane.log_begin = lane.log_end = static_cast<std::uint32_t>(lane.items.size());
    }
    if (log_step >= 0 && b == log_step + 1) {
      program_.log_end = instructions;
      for (LaneProgram& lane : program_.lanes)
        lane.log_end = static_cast<std::uint32_t>(lane.items.size());
    }
  }

  struct ThreadState {
    std::uint16_t number{};
    std::uint32_t last{none};
    std::uint64_t gap_ns{};
    Group group;
  };

  const job::Job& job_;
  std::uint32_t class_;
  const trace::Recording& recording_;
  const Model& model_;
  const Meetings& meetings_;
  const estimate::Estimator& estimator_;
  std::vector<MeetReference>& references_;
  Program program_;
  Lanes lanes_;
  CommunicationTimes communication_times_;
  std::vector<GraphChains> chains_;
  std::vector<ThreadState> threads_;
  std::unordered_map<std::uint32_t, std::uint32_t> events_;  // event → ticket of its latest record
  std::vector<std::uint32_t> calls_, sends_, receives_;
  const Record* wide_{};
};

Status check(const job::Job& job) {
  auto bad = [](std::string_view what) {
    return Error{fmt::format("the job is not consistent: {}; it must come from collate", what)};
  };
  if (job.classes.empty()) return bad("it has no rank class");
  if (job.class_of_rank.size() != static_cast<std::size_t>(job.world_size))
    return bad("class_of_rank");
  for (std::uint32_t c : job.class_of_rank)
    if (c >= job.classes.size()) return bad("class_of_rank");
  for (const job::Communicator& x : job.communicators) {
    if (x.ranks.size() != x.slots.size()) return bad("communicator slots");
    for (std::int32_t rank : x.ranks)
      if (rank < 0 || rank >= job.world_size) return bad("communicator ranks");
  }
  for (const job::RankClass& c : job.classes) {
    if (c.step_begin.size() != job.measured.size() + 1) return bad("step_begin");
    if (!std::is_sorted(c.step_begin.begin(), c.step_begin.end())) return bad("step_begin");
    for (const job::Channel& channel : c.channels)
      if (channel.peer_class != job::none &&
          (channel.peer_class >= job.classes.size() ||
           channel.peer_channel >= job.classes[channel.peer_class].channels.size()))
        return bad("channels");
  }
  return {};
}

}  // namespace

Result<Plan> compile(const job::Job& job, const Model& model, const estimate::Estimator& estimator,
                     const network::Network& network, std::int64_t log_step) {
  if (Status ok = check(job); !ok) return ok.error();
  Plan plan;
  plan.model = model;
  plan.log_step = log_step;
  plan.port_capacity = network.port_capacity();
  Meetings meetings(job, model.gpus_per_node);
  for (std::uint32_t c = 0; c < job.classes.size(); ++c) {
    Result<Program> program =
        ClassCompiler(job, c, model, meetings, estimator, network, plan.references).run(log_step);
    if (!program) return program.error();
    plan.classes.push_back(std::move(*program));
  }
  plan.meets = meetings.take_meets();
  return plan;
}

}  // namespace maya::simulate
