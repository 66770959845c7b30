#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/format.h"
#include "report/passes.h"
#include "report/serialization.h"

namespace maya::report {
namespace {

// A family of work, with what its name and the advice depend on.
struct Family {
  std::string what;
  double path_ns{};               // on the critical path
  double ns{}, flops{}, bytes{};  // over all measured uses
  const Work* example{};  // its costliest op: what it depends on is what the advice is about
  double example_ns{};
  int members{};  // number of members of the communicator
  bool crosses_nodes{};
};

std::string norm_name(NormKind kind) {
  switch (kind) {
    case NormKind::layer:
      return "layer norm";
    case NormKind::rms:
      return "RMS norm";
    case NormKind::batch:
      return "batch norm";
    case NormKind::group:
      return "group norm";
    case NormKind::instance:
      return "instance norm";
    default:
      return "normalization";
  }
}

std::string family_name(const Op& op, int members) {
  const Work& work = op.work;
  if (const auto* collective = std::get_if<Collective>(&work))
    return fmt::format("{} over {} ranks", enum_name(collective->kind), members);
  if (std::holds_alternative<PointToPoint>(work)) return "send / receive";
  if (const auto* norm = std::get_if<Normalization>(&work)) return norm_name(norm->kind);
  if (const auto* copy = std::get_if<Copy>(&work))
    return fmt::format("copy {}", enum_name(copy->direction));
  if (is_matrix_work(work)) return fmt::format("{} {}", kind_name(work), name(compute_type(work)));
  if (std::holds_alternative<OtherKernel>(work)) return fmt::format("unknown: {}", op.name);
  return std::string(kind_name(work));
}

double peak_of(const catalog::Gpu& gpu, DType type) {
  auto found = gpu.peak_tflops.find(type);
  return found == gpu.peak_tflops.end() ? 0 : found->second;
}

// What the advice depends on, apart from the family.
struct Setting {
  const catalog::Cluster& cluster;
  int world_size{1};
  bool uses_tf32{};           // some matrix product uses it, so it is enabled
  bool pipeline{};            // some ranks are pipeline stages
  bool shards{};              // weights or gradients are already sharded
  std::string serialization;  // why gradient reductions do not overlap; empty: they can
};

// Matrix products in FP32 do not run on tensor cores.
std::string plain_cores_help(const Setting& setting) {
  const catalog::Gpu& gpu = setting.cluster.gpu;
  const char* half = peak_of(gpu, DType::bf16) > 0 ? "bf16" : "fp16";
  if (setting.uses_tf32 || peak_of(gpu, DType::tf32) <= 0)
    return fmt::format("FP32 without tensor cores: {} would use them", half);
  return fmt::format("FP32 without tensor cores: allow TF32, or train in {}", half);
}

std::string matrix_help(const Family& family, const Setting& setting) {
  const catalog::Cluster& cluster = setting.cluster;
  const DType type = compute_type(*family.example);
  const double peak = peak_of(cluster.gpu, type);
  const double half = std::max(peak_of(cluster.gpu, DType::bf16), peak_of(cluster.gpu, DType::f16));
  if (type == DType::f32 && half > 2 * peak) return plain_cores_help(setting);
  if (const auto* attention = std::get_if<Attention>(family.example);
      attention && attention->kernel == AttentionKernel::memory_efficient)
    return "memory-efficient kernel: a layout or mask that FlashAttention supports is faster";
  if (peak <= 0 || family.ns <= 0) return "fewer FLOPs: smaller shapes, no recomputation";
  const double reached = family.flops / family.ns / 1000 / peak;  // FLOP/ns = 1e9 FLOP/s
  if (reached < 0.4 && std::holds_alternative<Attention>(*family.example))
    return fmt::format(
        "{} of peak, limited by softmax and memory bandwidth: a newer kernel, larger heads",
        percent(reached));
  if (reached < 0.4)
    return fmt::format("only {} of peak: larger micro-batch, sizes that are multiples of 128",
                       percent(reached));
  const bool can_fp8 = peak_of(cluster.gpu, DType::f8e4m3) > 1.5 * peak && bits(type) == 16;
  return fmt::format(
      "{} of peak: {}", percent(reached),
      can_fp8 ? "FP8, or less recomputation" : "less recomputation, or a faster GPU");
}

std::string communication_help(const Family& family, const Setting& setting) {
  const catalog::Cluster& cluster = setting.cluster;
  if (std::holds_alternative<PointToPoint>(*family.example))
    return setting.pipeline ? "more micro-batches, or an interleaved schedule, to hide the exchange"
                            : "exchange less between ranks, or keep them within a node";
  const auto kind = std::get<Collective>(*family.example).kind;
  const char* links = family.crosses_nodes ? ", a faster network (--set network.nic_gbps=...)"
                      : cluster.gpu.nvlink_gbps > 0 ? ""
                                                    : ", NVLink between its ranks";
  switch (kind) {
    case CollectiveKind::all_reduce:
      if (!setting.serialization.empty()) return setting.serialization;
      return fmt::format("gradient accumulation, more overlap (larger buckets){}", links);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      if (kind == CollectiveKind::reduce_scatter && !setting.serialization.empty())
        return setting.serialization;
      return fmt::format("prefetch earlier, shard over fewer ranks{}", links);
    case CollectiveKind::all_to_all:
      return fmt::format("keep the exchange within a node{}", links);
    default:
      return fmt::format("start it earlier{}", links);
  }
}

std::string optimizer_help(const OptimizerStep& step, const Setting& setting) {
  if (!step.fused) return "a fused optimizer (fused=True) reads the state once";
  return setting.world_size > 1 && !setting.shards
             ? "shard the optimizer over the ranks (ZeRO), or use 8-bit states"
             : "8-bit states would move fewer bytes";
}

std::string help(const Family& family, const Setting& setting) {
  const Work& work = *family.example;
  if (is_communication(work)) return communication_help(family, setting);
  if (is_matrix_work(work)) return matrix_help(family, setting);
  if (const auto* copy = std::get_if<Copy>(&work)) {
    if (copy->direction == CopyDirection::device) return "avoid .contiguous() and layout changes";
    return copy->pinned ? "overlap it: a side stream, prefetching"
                        : "pin the memory, copy with non_blocking=True";
  }
  if (const auto* step = std::get_if<OptimizerStep>(&work)) return optimizer_help(*step, setting);
  if (std::holds_alternative<OtherKernel>(work))
    return "there is no model for this kernel: measure it (maya calibrate)";
  if (std::holds_alternative<TritonKernel>(work)) return "memory-bound: fewer, larger tensors";
  return "memory-bound: fuse it (torch.compile), or lower precision";
}

Setting setting_of(const job::Job& job, const catalog::Cluster& cluster,
                   const std::vector<OpUse>& uses) {
  Setting setting{cluster, job.world_size};
  for (const OpUse& use : uses) {
    const Work& work = job.classes[use.rank_class].recording.ops[use.op].work;
    setting.uses_tf32 |= is_matrix_work(work) && compute_type(work) == DType::tf32;
    if (const auto* call = std::get_if<Collective>(&work))
      setting.shards |= call->kind == CollectiveKind::reduce_scatter;
  }
  const std::vector<bool> stages = stages_of_pipelines(job);
  setting.pipeline = std::find(stages.begin(), stages.end(), true) != stages.end();
  setting.serialization = serialization_help(job);
  return setting;
}

// If the host takes longer than this between two calls, it does more than launching: computation in
// Python, a data loader, an optimizer on the CPU.
constexpr std::int64_t cpu_work_ns = 1'000'000;

// Smaller costs are not listed.
constexpr double least_share = 0.01, least_ms = 0.01;

}  // namespace

std::vector<LargestCost> largest_costs(const job::Job& job, const simulate::Timeline& timeline,
                                       const catalog::Cluster& cluster,
                                       const std::vector<OpUse>& uses, const BreakdownMs& breakdown,
                                       std::size_t most) {
  const Setting setting = setting_of(job, cluster, uses);
  std::map<std::string, Family> families;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Family*> family_of_op;  // (class, op)
  const int per_node = std::max(1, cluster.gpus_per_node);
  for (const OpUse& use : uses) {
    const trace::Recording& recording = job.classes[use.rank_class].recording;
    const Op& op = recording.ops[use.op];
    std::vector<std::int32_t> ranks;
    if (is_communication(op.work)) ranks = members(job, recording, use.communicator);
    Family& family = families[family_name(op, static_cast<int>(ranks.size()))];
    const double weight = static_cast<double>(use.count * job.classes[use.rank_class].ranks.size());
    if (family.example == nullptr || use.ns * weight > family.example_ns)
      family.example = &op.work, family.example_ns = use.ns * weight;
    family.ns += use.ns * weight;
    family.flops += flops(op.work) * weight;
    for (std::int32_t rank : ranks) family.crosses_nodes |= rank / per_node != ranks[0] / per_node;
    family_of_op[{use.rank_class, use.op}] = &family;
  }

  // The path is that of one step. It is scaled to the reported step, which is a mean.
  double path_ns = 0;
  for (const simulate::CriticalLink& link : timeline.critical_path)
    path_ns += static_cast<double>(link.end_ns - link.start_ns);
  const double scale = path_ns > 0 ? timeline.step_ns / path_ns : 1;

  double launch_ns = 0, cpu_ns = 0, wait_ns = 0;
  for (const simulate::CriticalLink& link : timeline.critical_path) {
    const double ns = scale * static_cast<double>(link.end_ns - link.start_ns);
    if (link.what == simulate::CriticalLink::What::host) {
      (link.end_ns - link.start_ns >= cpu_work_ns ? cpu_ns : launch_ns) += ns;
    } else if (link.what == simulate::CriticalLink::What::wait) {
      wait_ns += ns;
    } else if (auto found = family_of_op.find({link.rank_class, link.op});
               found != family_of_op.end()) {
      found->second->path_ns += ns;
    }
  }
  if (timeline.critical_path.empty() && job.world_size > 0) {
    const double steps = measured_count(job);
    for (auto& [name, family] : families) family.path_ns = family.ns / steps / job.world_size;
  }

  std::vector<LargestCost> costs;
  auto add = [&](std::string what, double ns, std::string help) {
    if (ns > 0 && timeline.step_ns > 0)
      costs.push_back({std::move(what), ns / 1e6, ns / timeline.step_ns, std::move(help)});
  };
  for (const auto& [name, family] : families) add(name, family.path_ns, help(family, setting));
  add("host: launching kernels", launch_ns,
      "the GPU waits for launches: torch.compile, CUDA graphs, a larger batch");
  add("host: work on the CPU", cpu_ns,
      "the GPU waits for the CPU (data loading, a CPU optimizer, Python): do it in other threads");
  add("gaps and synchronization", wait_ns, "fewer synchronizations: .item(), .cpu(), prints");
  add("pipeline bubble", 1e6 * breakdown.pipeline_bubble,
      "more micro-batches, or an interleaved or zero-bubble schedule");
  add("waiting for slower ranks", 1e6 * breakdown.waiting,
      "ranks reach their collectives at different times: balance their work");
  auto by_time = [](const LargestCost& a, const LargestCost& b) {
    return a.ms != b.ms ? a.ms > b.ms : a.what < b.what;
  };
  std::sort(costs.begin(), costs.end(), by_time);
  // If the path has few families (a launch-bound step is all host), also list the largest work that
  // is hidden.
  std::erase_if(costs, [](const LargestCost& cost) {
    return cost.share < least_share || cost.ms < least_ms;
  });
  if (costs.size() < most && !timeline.critical_path.empty()) {
    std::vector<LargestCost> beside;
    for (const auto& [name, family] : families) {
      const double ns = family.ns / measured_count(job) / std::max(1, job.world_size);
      if (family.path_ns < 0.01 * timeline.step_ns && ns > 0.05 * timeline.step_ns)
        beside.push_back(
            {name + ", hidden", ns / 1e6, ns / timeline.step_ns, help(family, setting)});
    }
    std::sort(beside.begin(), beside.end(), by_time);
    costs.insert(costs.end(), beside.begin(), beside.end());
  }
  if (costs.size() > most) costs.resize(most);
  return costs;
}

}  // namespace maya::report
