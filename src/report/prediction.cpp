#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "maya/report.h"
#include "op/text.h"
#include "report/advice.h"
#include "report/assumptions.h"
#include "report/ending.h"
#include "report/format.h"
#include "report/memory.h"
#include "report/passes.h"
#include "report/serialization.h"
#include "report/stages.h"
#include "report/throughput.h"
#include "report/usage.h"

namespace maya::report {
namespace {

std::vector<double> each_ms(const simulate::Timeline& timeline) {
  std::vector<double> each;
  for (const simulate::Step& step : timeline.steps)
    each.push_back(static_cast<double>(step.end_ns - step.start_ns) / 1e6);
  return each;
}

constexpr std::size_t most_ops = 50, most_unknown_kernels = 20;
// The recorder's warning for host reads of results that were not computed.
constexpr std::string_view unknown_reads =
    "host reads of unknown device bytes (answered with zeros)";

std::string found_by_name(job::StepsFoundBy found_by) {
  switch (found_by) {
    case job::StepsFoundBy::annotation:
      return "annotation";
    case job::StepsFoundBy::optimizer:
      return "optimizer";
    case job::StepsFoundBy::backward:
      return "backward";
    case job::StepsFoundBy::period:
      return "period";
    case job::StepsFoundBy::user:
      return "user";
    case job::StepsFoundBy::whole_run:
      return "whole_run";
  }
  return "whole_run";
}

double weight_of(const job::Job& job, const OpUse& use) {
  return static_cast<double>(use.count * job.classes[use.rank_class].ranks.size());
}

// `to_text` without the kind, which has its own field.
std::string sizes_of(const Work& work) {
  std::string text = to_text(work, is_communication(work));
  const std::size_t space = text.find(' ');
  return space == std::string::npos ? "" : text.substr(space + 1);
}

// Ranks begin a step at different times and wait for each other in its collectives, so the time
// between a rank's own boundaries is not the step of the job. Adjusts the parts so that they add up
// to the step: excess time is removed from communication, then from idle; missing time is added to
// idle.
simulate::Breakdown within_step(simulate::Breakdown part, double step_ns) {
  double excess =
      part.compute_ns + part.exposed_communication_ns + part.copy_ns + part.idle_ns - step_ns;
  if (excess < 0) part.idle_ns -= excess;
  auto take = [&](double& from) {
    const double taken = std::clamp(excess, 0.0, from);
    from -= taken, excess -= taken;
    return taken;
  };
  part.communication_ns -= take(part.exposed_communication_ns);
  for (double* from : {&part.idle_ns, &part.copy_ns, &part.compute_ns}) take(*from);
  part.host_bound_ns = std::min(part.host_bound_ns, part.idle_ns);
  part.message_wait_ns = std::min(part.message_wait_ns, part.exposed_communication_ns);
  part.collective_wait_ns =
      std::min(part.collective_wait_ns, part.exposed_communication_ns - part.message_wait_ns);
  return part;
}

BreakdownMs mean_breakdown(const job::Job& job, const simulate::Timeline& timeline) {
  BreakdownMs mean;
  double ranks = 0;
  const std::vector<bool> stages = stages_of_pipelines(job);
  for (std::size_t c = 0; c < job.classes.size() && c < timeline.breakdown.size(); ++c) {
    const simulate::Breakdown part = within_step(timeline.breakdown[c], timeline.step_ns);
    const auto weight = static_cast<double>(job.classes[c].ranks.size());
    ranks += weight;
    mean.compute += weight * part.compute_ns;
    mean.communication += weight * part.communication_ns;
    mean.exposed_communication += weight * part.exposed_communication_ns;
    mean.copy += weight * part.copy_ns;
    mean.idle += weight * part.idle_ns;
    mean.host_bound += weight * part.host_bound_ns;
    (stages[c] ? mean.pipeline_bubble : mean.waiting) += weight * part.message_wait_ns;
    mean.waiting += weight * part.collective_wait_ns;
  }
  if (ranks == 0) return {};
  for (double* sum : {&mean.compute, &mean.communication, &mean.exposed_communication, &mean.copy,
                      &mean.idle, &mean.host_bound, &mean.pipeline_bubble, &mean.waiting})
    *sum /= ranks * 1e6;
  return mean;
}

Coverage coverage_of(const job::Job& job, const std::vector<OpUse>& uses) {
  Coverage coverage;
  std::map<std::string, KernelShare> unknown;
  double total = 0;
  for (const OpUse& use : uses) {
    const double ns = use.ns * weight_of(job, use);
    total += ns;
    switch (use.origin) {
      case estimate::Origin::measured:
        coverage.measured += ns;
        break;
      case estimate::Origin::fitted:
        coverage.fitted += ns;
        break;
      case estimate::Origin::first_principles:
        coverage.first_principles += ns;
        break;
      case estimate::Origin::unknown:
        coverage.unknown += ns;
        break;
    }
    const Op& op = job.classes[use.rank_class].recording.ops[use.op];
    if (!std::holds_alternative<OtherKernel>(op.work)) continue;
    KernelShare& kernel = unknown[op.name];
    kernel.name = op.name;
    kernel.share += ns;
    kernel.count += use.count * job.classes[use.rank_class].ranks.size();
  }
  if (total > 0)
    for (double* share :
         {&coverage.measured, &coverage.fitted, &coverage.first_principles, &coverage.unknown})
      *share /= total;
  for (auto& [name, kernel] : unknown) {
    if (total > 0) kernel.share /= total;
    coverage.unknown_kernels.push_back(kernel);
  }
  std::stable_sort(coverage.unknown_kernels.begin(), coverage.unknown_kernels.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  if (coverage.unknown_kernels.size() > most_unknown_kernels)
    coverage.unknown_kernels.resize(most_unknown_kernels);

  std::map<std::string, std::uint64_t> calls;
  for (const job::RankClass& rank_class : job.classes)
    for (const trace::Count& call : rank_class.recording.unimplemented_calls)
      calls[call.name] += call.count * rank_class.ranks.size();
  for (const auto& [name, count] : calls) coverage.unimplemented_calls.push_back({name, count});
  return coverage;
}

std::vector<OpCost> op_costs(const job::Job& job, const std::vector<OpUse>& uses, double steps) {
  // The same work with the same name is one row, regardless of its class and its index in the op
  // table.
  std::map<std::tuple<std::string, std::string, std::string>, OpCost> rows;
  double total = 0;
  for (const OpUse& use : uses) {
    const Op& op = job.classes[use.rank_class].recording.ops[use.op];
    const double weight = weight_of(job, use);
    total += use.ns * weight;
    std::string sizes = sizes_of(op.work);
    if (is_communication(op.work))
      sizes +=
          fmt::format(" ranks={}",
                      members(job, job.classes[use.rank_class].recording, use.communicator).size());
    OpCost& row = rows[{std::string(kind_name(op.work)), op.name, sizes}];
    if (row.count == 0) {
      row.kind = kind_name(op.work);
      row.name = op.name;
      row.sizes = sizes;
      row.origin = estimate::name(use.origin);
      if (use.ns > 0) {
        row.tflops = flops(op.work) / use.ns / 1000;
        row.gbps = bytes_moved(op.work) / use.ns;
      }
    }
    row.count += weight;
    row.ms += use.ns * weight;
  }
  std::vector<OpCost> result;
  for (auto& [key, row] : rows) {
    row.share = total > 0 ? row.ms / total : 0;
    row.count /= steps * job.world_size;
    row.ms /= steps * job.world_size * 1e6;
    result.push_back(std::move(row));
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const OpCost& a, const OpCost& b) { return a.ms > b.ms; });
  if (result.size() > most_ops) result.resize(most_ops);
  return result;
}

// Fills flops_per_step, mfu and mfu_dtype. The peak is that of the type with the most FLOPs.
void utilization(const job::Job& job, const std::vector<OpUse>& uses, double steps,
                 const catalog::Gpu& gpu, Prediction& prediction) {
  std::map<DType, double> by_type;
  for (const OpUse& use : uses) {
    const Work& work = job.classes[use.rank_class].recording.ops[use.op].work;
    if (is_matrix_work(work))
      by_type[compute_type(work)] += flops(work) * weight_of(job, use) / steps;
  }
  DType dominant = DType::unknown;
  for (const auto& [type, sum] : by_type) {
    prediction.flops_per_step += sum;
    if (dominant == DType::unknown || sum > by_type[dominant]) dominant = type;
  }
  if (dominant == DType::unknown) return;
  prediction.mfu_dtype = name(dominant);
  const auto peak = gpu.peak_tflops.find(dominant);
  if (peak == gpu.peak_tflops.end() || peak->second <= 0 || !prediction.step) return;
  prediction.mfu =
      prediction.flops_per_step / (prediction.step->ms / 1000 * job.gpus() * peak->second * 1e12);
}

// Whether the program continued to train after it ran out of memory (a batch size finder). This is
// not reported as out of memory.
bool trained_after(const job::Job& job, const job::RankClass& rank_class, std::uint32_t record) {
  if (job.found_by == job::StepsFoundBy::whole_run) return false;
  const auto& begin = rank_class.step_begin;
  return begin.size() >= 2 && begin[begin.size() - 2] > record;
}

OutOfMemory refusal_of(const RankEnding* ending, std::int32_t rank, const Refusal& refusal,
                       std::int64_t context, std::int64_t capacity) {
  OutOfMemory oom{rank, refusal.requested_bytes, refusal.in_use_bytes + context, capacity, true};
  oom.missing_bytes = std::max<std::int64_t>(
      0, refusal.requested_bytes + refusal.in_use_bytes + context - capacity);
  if (ending == nullptr) return oom;
  oom.where = collate::words(ending->progress);
  oom.in_use = ending->parts;
  oom.in_use.push_back({"for the CUDA context and libraries", context});
  if (ending->forward_bytes > 0)
    oom.estimated_missing_bytes =
        std::max(oom.missing_bytes, ending->forward_bytes + context - capacity);
  return oom;
}

// The memory of a class: that of its fullest rank. If the recordings were cut to common steps, the
// whole recordings are used.
MemoryUse memory_of(const job::RankClass& rank_class, const Ending* ending) {
  MemoryUse use = memory_use(rank_class.recording);
  if (ending == nullptr) return use;
  for (std::int32_t rank : rank_class.ranks)
    if (const RankEnding* one = ending->find(rank))
      use.peak_bytes = std::max(use.peak_bytes, one->memory.peak_bytes);
  use.refusal.reset();  // its record may be after the common steps; `memory` checks each rank
  return use;
}

void memory(const job::Job& job, const catalog::Gpu& gpu, const Ending* ending,
            Prediction& prediction) {
  for (const job::RankClass& rank_class : job.classes) {
    const trace::Identity& identity = rank_class.recording.identity;
    const MemoryUse use = memory_of(rank_class, ending);
    // The recorded figures of the GPU if it is the predicted one, else those of the catalogue.
    const bool same_gpu = identity.gpu == gpu.name && identity.memory_capacity > 0;
    const auto context =
        same_gpu ? static_cast<std::int64_t>(identity.memory_context) : gpu.context_bytes;
    const auto capacity =
        same_gpu ? static_cast<std::int64_t>(identity.memory_capacity + identity.memory_context)
                 : gpu.memory_bytes;
    for (std::int32_t rank : rank_class.ranks)
      prediction.memory.push_back({rank, use.peak_bytes + context, use.reserved_bytes, context,
                                   use.communicator_bytes, capacity,
                                   static_cast<std::uint32_t>(use.recovered)});

    const std::int32_t recorded = rank_class.representative;
    auto refuse = [&](std::int32_t rank, const Refusal& refusal) {
      if (!prediction.out_of_memory)
        prediction.out_of_memory =
            refusal_of(ending ? ending->find(rank) : nullptr, rank, refusal, context, capacity);
    };
    if (ending != nullptr) {
      for (std::int32_t rank : rank_class.ranks)
        if (const RankEnding* one = ending->find(rank);
            one && one->memory.refusal &&
            !trained_after(job, rank_class, one->memory.refusal->record))
          refuse(rank, *one->memory.refusal);
    } else if (use.refusal && !trained_after(job, rank_class, use.refusal->record)) {
      refuse(recorded, *use.refusal);
    }
    if (prediction.out_of_memory) continue;
    if (capacity > 0 && use.peak_bytes + context > capacity) {
      prediction.out_of_memory = {recorded, use.peak_bytes + context - capacity, capacity, capacity,
                                  false};
      prediction.out_of_memory->missing_bytes = use.peak_bytes + context - capacity;
    } else if (use.recovered > 0) {
      prediction.notes.push_back(
          fmt::format("rank {}: the allocator ran out of memory {} time{}, released its cache and "
                      "continued; this slows the step down",
                      recorded, use.recovered, use.recovered == 1 ? "" : "s"));
    }
  }
  std::sort(prediction.memory.begin(), prediction.memory.end(),
            [](const RankMemory& a, const RankMemory& b) { return a.rank < b.rank; });
}

// Adds what happened to a command that failed.
void conclude(const Ending& ending, Prediction& prediction) {
  const bool refused = prediction.out_of_memory && prediction.out_of_memory->during_run;
  const std::string what = refused ? headline(*prediction.out_of_memory) : headline(ending);
  if (!prediction.step) {
    prediction.no_step = what;
    return;
  }
  if (!refused && ending.exit_code == 0 && !ending.killed) return;
  prediction.notes.push_back(
      fmt::format("{}; every rank had completed {} training step{} before, which {} measured", what,
                  ending.whole_steps, ending.whole_steps == 1 ? "" : "s",
                  ending.whole_steps == 1 ? "is" : "are"));
}

void add_notes(const job::Job& job, const simulate::Timeline& timeline, const Ending* ending,
               Prediction& prediction) {
  for (const std::string& note : job.notes) prediction.notes.push_back(note);
  for (const std::string& note : timeline.notes) prediction.notes.push_back(note);
  std::vector<std::int32_t> cut;
  std::map<std::string, std::uint64_t> warnings;
  for (const job::RankClass& rank_class : job.classes) {
    const trace::Recording& recording = rank_class.recording;
    if (!recording.complete) cut.push_back(rank_class.representative);
    for (const trace::Count& warning : recording.warnings) warnings[warning.name] += warning.count;
  }
  if (!cut.empty() && ending == nullptr)
    prediction.notes.push_back(
        fmt::format("the recording{} of rank{} {} end{} early (the process crashed, was killed or "
                    "the disk was full): the part until then is used",
                    cut.size() == 1 ? "" : "s", cut.size() == 1 ? "" : "s", rank_list(cut),
                    cut.size() == 1 ? "s" : ""));
  for (const auto& [name, count] : warnings)
    if (name == unknown_reads)
      prediction.notes.push_back(
          "values that the GPU would have computed (losses, metrics) read as zero, and times that "
          "the script prints are those of this machine: neither is a result");
    else if (!is_assumption(name))
      prediction.notes.push_back(count == 1 ? name : fmt::format("{} ({} times)", name, count));
  const double host_ms = std::accumulate(prediction.families.begin(), prediction.families.end(),
                                         0.0, [](double sum, const auto& family) {
                                           return sum + (family.family == "host" ? family.ms : 0);
                                         });
  if (prediction.step && job.host_spread > job::busy_host_spread &&
      host_ms > 0.05 * prediction.step->ms)
    prediction.notes.push_back(
        fmt::format("the machine was busy while it recorded: equal calls took {} more host time at "
                    "the median than at best, so the {} of host time in the step may be too long, "
                    "and the interval goes down further; record again when the machine is idle",
                    percent(job.host_spread - 1), human_ms(host_ms)));
  if (prediction.coverage.unknown > 0.02)
    prediction.notes.push_back(
        fmt::format("{} of the GPU time is in kernels without a model; their time is a rough guess",
                    percent(prediction.coverage.unknown)));
}

}  // namespace

Prediction predict(const job::Job& job, const simulate::Timeline& timeline, const Models& models,
                   const catalog::Cluster& cluster, const std::optional<StepUnits>& units,
                   const Ending* ending) {
  Prediction prediction;
  // With the node count, as the user would write it. A single GPU has none.
  const bool counted = cluster.name.find(':') == std::string::npos && cluster.world_size() > 1;
  prediction.cluster = counted ? fmt::format("{}:{}", cluster.name, cluster.nodes) : cluster.name;
  prediction.gpu = cluster.gpu.name;
  prediction.world_size = job.world_size;
  prediction.gpus = job.gpus();
  prediction.rank_classes = static_cast<std::int32_t>(job.classes.size());
  if (!job.classes.empty()) prediction.command = job.classes[0].recording.identity.command;

  memory(job, cluster.gpu, ending, prediction);
  const std::vector<OpUse> op_uses = uses(job, models);
  const double steps = measured_count(job);

  // If the run ended out of memory before a step was detected, the whole run is not a step.
  const bool died = prediction.out_of_memory && prediction.out_of_memory->during_run &&
                    job.found_by == job::StepsFoundBy::whole_run;
  if (timeline.step_ns > 0 && !died)
    prediction.step = StepTime{timeline.step_ns / 1e6,      timeline.step_low_ns / 1e6,
                               timeline.step_high_ns / 1e6, static_cast<std::uint32_t>(steps),
                               found_by_name(job.found_by), each_ms(timeline)};
  prediction.breakdown = mean_breakdown(job, timeline);
  prediction.stages = pipeline_stages(job);
  if (prediction.step) {
    utilization(job, op_uses, steps, cluster.gpu, prediction);
    const double ms = prediction.step->ms;
    if (units)
      prediction.throughput =
          Throughput{units->unit, units->per_step, units->per_step / ms * 1000, "user"};
    else
      prediction.throughput = throughput_of(job, ms);
    prediction.largest_costs = largest_costs(job, timeline, cluster, op_uses, prediction.breakdown);
    for (const simulate::FamilyTime& family : timeline.families)
      prediction.families.push_back(
          {family.family, family.ns / 1e6, family.low_ns / 1e6, family.high_ns / 1e6});
    prediction.common_error = timeline.common_error;
  }
  const double price =
      cluster.usd_per_gpu_hour > 0 ? cluster.usd_per_gpu_hour : cluster.gpu.usd_per_hour;
  prediction.cost = {
      price, prediction.step ? price * job.gpus() * prediction.step->ms / 3.6e6 : 0,
      cluster.usd_per_gpu_hour > 0 ? cluster.price_source : cluster.gpu.price_source};
  prediction.coverage = coverage_of(job, op_uses);
  if (prediction.step) prediction.ops = op_costs(job, op_uses, steps);
  if (prediction.step) {
    prediction.assumptions = assumptions_of(job, timeline, op_uses);
    const BreakdownMs& parts = prediction.breakdown;
    if (parts.exposed_communication > 0.01 * prediction.step->ms)
      if (std::string why = serialization_help(job); !why.empty())
        prediction.notes.push_back(std::move(why));
  }
  if (ending != nullptr)
    conclude(*ending, prediction);
  else if (!prediction.step && prediction.out_of_memory)
    prediction.no_step = headline(*prediction.out_of_memory);
  add_notes(job, timeline, ending, prediction);
  return prediction;
}

}  // namespace maya::report
