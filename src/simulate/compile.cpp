#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "simulate/communication_times.h"
#include "simulate/graph_chains.h"
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
  struct Lane {
    std::uint32_t tail{none};  // ticket recorded after the lane's last item, if there is one
    std::uint32_t submissions{};
    bool blocking{};                    // orders with the legacy default stream
    bool before_legacy{};               // has items the legacy stream has not waited for
    std::uint32_t seen_legacy{};        // legacy epoch it has waited for
    bool in_step{};                     // has items since the last boundary
    std::uint32_t synced_by{none};      // thread that waited for the tail
    std::vector<std::uint32_t> chains;  // lanes for graph chains 1… launched here
  };
  struct Stream {
    std::uint32_t lane{none};
    std::int32_t priority{};
    bool non_blocking{}, legacy{};
  };
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
      estimate::Estimate e = estimator_(op);
      WorkTime& t = program_.times[i];
      t.ns =
          std::isfinite(e.ns) ? std::max<std::int64_t>(1, std::llround(std::min(e.ns, 1e13))) : 1;
      t.low_ns = e.low_ns, t.high_ns = e.high_ns;
      t.resource = resource_of(op);
      t.share = model_.kernel_share(op);
    }
  }

  std::uint32_t new_ticket() {
    program_.ticket_step.push_back(none);
    return program_.tickets++;
  }

  Stream& stream(std::uint16_t id) {
    if (id >= streams_.size()) streams_.resize(id + 1u);
    return streams_[id];
  }

  std::uint32_t new_lane(std::uint16_t stream, std::int32_t priority, bool blocking) {
    program_.lanes.push_back({{}, stream, priority});
    Lane& lane = lanes_.emplace_back();
    lane.blocking = blocking;
    return static_cast<std::uint32_t>(lanes_.size() - 1);
  }

  // Stream ids are the process's own: the legacy default stream is told by its flag.
  std::uint32_t lane_of(std::uint16_t id, std::uint8_t flags) {
    Stream& s = stream(id);
    s.legacy |= (flags & trace::legacy) != 0;
    if (s.lane == none) {
      s.lane = new_lane(id, s.priority, !s.legacy && !s.non_blocking);
      if (lanes_[s.lane].blocking) blocking_lanes_.push_back(s.lane);
    }
    return s.lane;
  }

  void push(std::uint32_t lane, Item item) {
    program_.lanes[lane].items.push_back(item);
    Lane& l = lanes_[lane];
    l.tail = none;
    l.in_step = true;
    l.before_legacy = true;
  }

  // Ticket for "everything issued to the lane so far is done"; none if there is nothing.
  std::uint32_t tail(std::uint32_t lane) {
    Lane& l = lanes_[lane];
    if (l.tail != none) return l.tail;
    auto& items = program_.lanes[lane].items;
    if (items.empty()) return none;
    std::uint32_t ticket = new_ticket();
    items.push_back({items.back().instruction, ticket, ItemKind::record});
    l.tail = ticket;
    l.synced_by = none;
    return ticket;
  }

  void wait_on(std::uint32_t lane, std::uint32_t ticket) {
    push(lane, {current(), ticket, ItemKind::wait});
    also(lane);
  }

  // The lane for a stream operation, ordered against the legacy default stream.
  std::uint32_t enter(const Record& r) { return enter(r.stream, r.flags); }
  std::uint32_t enter(std::uint16_t id, std::uint8_t flags) {
    std::uint32_t lane = lane_of(id, flags);
    if (flags & trace::legacy) {
      legacy_lane_ = lane;
      ++legacy_epoch_;
      for (std::uint32_t other : blocking_lanes_)
        if (other != lane && lanes_[other].before_legacy) {
          std::uint32_t ticket = tail(other);
          if (ticket != none) wait_on(lane, ticket);
          lanes_[other].before_legacy = false;
        }
    } else if (lanes_[lane].blocking && legacy_lane_ != none &&
               lanes_[lane].seen_legacy != legacy_epoch_) {
      lanes_[lane].seen_legacy = legacy_epoch_;
      std::uint32_t ticket = tail(legacy_lane_);
      if (ticket != none) wait_on(lane, ticket);
    }
    return lane;
  }

  std::uint32_t current() const {
    return static_cast<std::uint32_t>(program_.instructions.size() - 1);
  }
  Instruction& instruction() { return program_.instructions.back(); }

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

  void host_waits(std::uint32_t ticket) {
    if (ticket == none) return;
    program_.waits.push_back(ticket);
    instruction().waits_end = static_cast<std::uint32_t>(program_.waits.size());
  }

  void host_waits_for_device() {
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      std::uint32_t ticket = tail(lane);
      if (ticket == none || lanes_[lane].synced_by == instruction().thread) continue;
      lanes_[lane].synced_by = instruction().thread;
      host_waits(ticket);
    }
  }

  // Work of the current instruction on a lane; takes a place in its launch queue.
  void submit(std::uint32_t lane, Item item) {
    also(lane);
    if (instruction().queue_place == none) instruction().queue_place = lanes_[lane].submissions;
    ++lanes_[lane].submissions;
    item.closes = true;
    push(lane, item);
    ++program_.works;
  }

  // A further lane that gets items of the current instruction.
  void also(std::uint32_t lane) {
    Instruction& in = instruction();
    if (in.lane == none) {
      in.lane = lane;
      return;
    }
    if (!in.lane_list) {
      if (in.lane == lane) return;
      auto at = static_cast<std::uint32_t>(program_.lane_lists.size());
      program_.lane_lists.push_back(1);
      program_.lane_lists.push_back(in.lane);
      in.lane = at, in.lane_list = true;
    }
    auto* list = program_.lane_lists.data() + in.lane;
    if (std::find(list + 1, list + 1 + list[0], lane) != list + 1 + list[0]) return;
    ++list[0];
    program_.lane_lists.push_back(lane);
  }

  void record(std::uint32_t index) {
    const Record& r = recording_.records[index];
    if (r.kind == Kind::none) return;
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
        std::uint32_t lane = enter(r);
        submit(lane,
               {current(), r.value, r.kind == Kind::copy ? ItemKind::copy : ItemKind::kernel});
        if (r.flags & trace::blocking) host_waits(tail(lane));
        break;
      }
      case Kind::host_function:
        submit(enter(r), {current(), 0, ItemKind::host_function});
        break;
      case Kind::collective:
      case Kind::point_to_point:
        if (group.depth > 0) {
          instruction().call_ns = 0;  // the launch comes with the end of the group
          group.calls.push_back({index, r.stream, r.aux, r.flags, r.value});
        } else {
          std::uint32_t lane = enter(r);
          submit(lane,
                 {current(), communication(index, r.aux, {&r.value, 1}), ItemKind::communication});
          if (r.flags & trace::blocking) host_waits(tail(lane));
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
        std::uint32_t lane = enter(r);
        std::uint32_t ticket = new_ticket();
        push(lane, {current(), ticket, ItemKind::record});
        lanes_[lane].tail = ticket;
        lanes_[lane].synced_by = none;
        events_[r.value] = ticket;
        also(lane);
        break;
      }
      case Kind::stream_wait_event: {
        auto it = events_.find(r.value);
        if (it == events_.end()) break;  // never recorded: no wait, as CUDA has it
        wait_on(enter(r), it->second);
        break;
      }
      case Kind::event_synchronize: {
        auto it = events_.find(r.value);
        if (it != events_.end()) host_waits(it->second);
        break;
      }
      case Kind::stream_synchronize:
        host_waits(tail(lane_of(r.stream, r.flags)));
        if (r.flags & trace::legacy)
          for (std::uint32_t lane : blocking_lanes_) host_waits(tail(lane));
        break;
      case Kind::device_synchronize:
        host_waits_for_device();
        break;
      case Kind::stream_create:
        stream(r.stream) = {none, r.aux == 0 ? 0 : static_cast<std::int32_t>(r.aux) - 1000,
                            (r.flags & trace::non_blocking) != 0, (r.flags & trace::legacy) != 0};
        break;
      case Kind::release:
        if (!(r.flags & trace::async) && frees_device_memory()) host_waits_for_device();
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
    if (calls.empty()) instruction().call_ns = 0;
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
      std::uint32_t lane = enter(calls[i].stream, flags);
      submit(lane, {current(), communication(calls[i].record, calls[i].slot, ops),
                    ItemKind::communication});
      if (flags & trace::blocking) host_waits(tail(lane));
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
    std::uint32_t lane = enter(r);
    if (chains.chains == 0) return;
    also(lane);
    if (chains.last_node_of_first != none) instruction().queue_place = lanes_[lane].submissions++;
    std::vector<std::uint32_t> at{lane};
    while (lanes_[lane].chains.size() + 1 < chains.chains) {
      std::uint32_t chain = new_lane(r.stream, program_.lanes[lane].priority, false);
      lanes_[lane].chains.push_back(chain);
    }
    for (std::uint32_t c = 1; c < chains.chains; ++c) at.push_back(lanes_[lane].chains[c - 1]);
    if (chains.chains > 1) {
      std::uint32_t start = new_ticket();
      push(lane, {current(), start, ItemKind::record});
      for (std::uint32_t c = 1; c < chains.chains; ++c) {
        wait_on(at[c], start);
      }
    }
    std::uint32_t base = program_.tickets;
    for (std::uint32_t t = 0; t < chains.tickets; ++t) new_ticket();
    bool first = true;
    for (const ChainEntry& entry : chains.entries) {
      std::uint32_t to = at[entry.chain];
      if (entry.what != ChainEntry::What::node) {
        push(to, {current(), base + entry.index,
                  entry.what == ChainEntry::What::record ? ItemKind::record : ItemKind::wait});
        continue;
      }
      const Record& node = graph.nodes[entry.index].record;
      Item item{current(), node.value, ItemKind::kernel, !first};
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
          item.index = communication(instruction().record, node.aux, {&node.value, 1});
          break;
        default:  // an empty node: order only
          continue;
      }
      first = false;
      push(to, item);
      ++program_.works;
    }
    for (std::uint32_t c = 1; c < chains.chains; ++c) {
      std::uint32_t end = tail(at[c]);
      push(lane, {current(), end, ItemKind::wait});
    }
  }

  void close_step(std::size_t boundary, std::int64_t log_step) {
    StepProgram step;
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!lanes_[lane].in_step) continue;
      lanes_[lane].in_step = false;
      std::uint32_t ticket = tail(lane);
      if (program_.ticket_step[ticket] != none) continue;
      program_.ticket_step[ticket] = static_cast<std::uint32_t>(boundary);
      ++step.tickets;
    }
    if (!program_.instructions.empty()) {
      step.host = current();
      instruction().ends_step = true;
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
  CommunicationTimes communication_times_;
  std::vector<GraphChains> chains_;
  std::vector<Lane> lanes_;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> blocking_lanes_;
  std::vector<ThreadState> threads_;
  std::unordered_map<std::uint32_t, std::uint32_t> events_;  // event → ticket of its latest record
  std::vector<std::uint32_t> calls_, sends_, receives_;
  std::uint32_t legacy_lane_{none}, legacy_epoch_{};
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
