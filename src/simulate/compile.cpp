#include <fmt/format.h>

#include <algorithm>

#include "simulate/communication_times.h"
#include "simulate/meetings.h"
#include "simulate/program.h"
#include "simulate/record_compiler.h"

namespace maya::simulate {
namespace {

// Limit on the operations of a class. A few bytes of a recording can launch a large graph very
// often, which must not exhaust the memory.
constexpr std::uint64_t most_works = 500'000'000;

// Compiles one class.
class ClassCompiler final : RecordCompiler {
 public:
  ClassCompiler(const job::Job& job, std::uint32_t rank_class, const Model& model,
                const Meetings& meetings, const estimate::Estimator& estimator,
                const network::Network& network, std::vector<MeetReference>& references)
      : RecordCompiler(model),
        job_(job),
        class_(rank_class),
        recording_(job.classes[rank_class].recording),
        meetings_(meetings),
        estimator_(estimator),
        references_(references),
        communication_times_(job, rank_class, meetings, network, model,
                             program_.communication_times) {}

  Result<Program> run(std::int64_t log_step) {
    estimate_ops();
    for (const trace::Graph& graph : recording_.graphs) add_graph(graph);
    calls_.resize(recording_.communicators.size());
    sends_.resize(job_.classes[class_].channels.size());
    receives_.resize(sends_.size());
    program_.instructions.reserve(recording_.records.size());
    const auto& begins = job_.classes[class_].step_begin;
    std::size_t boundary = 0;
    for (std::uint32_t i = 0; i < recording_.records.size(); ++i) {
      for (; boundary < begins.size() && begins[boundary] <= i; ++boundary)
        close_step(boundary, log_step);
      add(i, recording_.records[i]);
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
  void estimate_ops() {
    for (const Op& op : recording_.ops) program_.times.push_back(work_time(op, model_, estimator_));
  }

  std::uint32_t communication(std::uint32_t record, std::uint16_t slot,
                              std::span<const std::uint32_t> ops) override {
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

  const job::Job& job_;
  std::uint32_t class_;
  const trace::Recording& recording_;
  const Meetings& meetings_;
  const estimate::Estimator& estimator_;
  std::vector<MeetReference>& references_;
  CommunicationTimes communication_times_;
  std::vector<std::uint32_t> calls_, sends_, receives_;
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
