#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/format.h"

namespace maya::report {
namespace {

// What the members of a family have in common: enough to name it and to advise.
struct Family {
  std::string what;
  double path_ns{};               // on the critical path
  double ns{}, flops{}, bytes{};  // over all measured uses
  const maya::Work* example{};
  int members{};  // of the communicator
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
  const maya::Work& work = op.work;
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

std::string matrix_help(const Family& family, const catalog::Cluster& cluster) {
  const DType type = compute_type(*family.example);
  const double peak = peak_of(cluster.gpu, type);
  const double half = std::max(peak_of(cluster.gpu, DType::bf16), peak_of(cluster.gpu, DType::f16));
  if (type == DType::f32 && half > 2 * peak)
    return "on plain cores: allow TF32, or train in bf16, for the tensor cores";
  if (const auto* attention = std::get_if<Attention>(family.example);
      attention && attention->kernel == AttentionKernel::memory_efficient)
    return "memory-efficient kernel: a layout or mask FlashAttention takes would be faster";
  if (peak <= 0 || family.ns <= 0) return "fewer FLOPs: smaller shapes, no recomputation";
  const double reached = family.flops / family.ns / 1000 / peak;  // FLOP/ns = 1e9 FLOP/s
  if (reached < 0.4 && std::holds_alternative<Attention>(*family.example))
    return fmt::format("{} of peak, softmax and memory bind it: a newer kernel, larger heads",
                       percent(reached));
  if (reached < 0.4)
    return fmt::format("only {} of peak: larger micro-batch, sizes that are multiples of 128",
                       percent(reached));
  const bool can_fp8 = peak_of(cluster.gpu, DType::f8e4m3) > 1.5 * peak && bits(type) == 16;
  return fmt::format(
      "{} of peak: {}", percent(reached),
      can_fp8 ? "FP8, or less recomputation" : "less recomputation, or a faster GPU");
}

std::string communication_help(const Family& family, const catalog::Cluster& cluster) {
  if (std::holds_alternative<PointToPoint>(*family.example))
    return "more micro-batches, or an interleaved schedule, to hide the exchange";
  const auto kind = std::get<Collective>(*family.example).kind;
  const char* links = family.crosses_nodes ? ", a faster network (--set network.nic_gbps=...)"
                      : cluster.gpu.nvlink_gbps > 0 ? ""
                                                    : ", NVLink between its ranks";
  switch (kind) {
    case CollectiveKind::all_reduce:
      return fmt::format("gradient accumulation, more overlap (larger buckets){}", links);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return fmt::format("prefetch earlier, shard over fewer ranks{}", links);
    case CollectiveKind::all_to_all:
      return fmt::format("keep the exchange within a node{}", links);
    default:
      return fmt::format("start it earlier{}", links);
  }
}

std::string help(const Family& family, const catalog::Cluster& cluster) {
  const maya::Work& work = *family.example;
  if (is_communication(work)) return communication_help(family, cluster);
  if (is_matrix_work(work)) return matrix_help(family, cluster);
  if (const auto* copy = std::get_if<Copy>(&work)) {
    if (copy->direction == CopyDirection::device) return "avoid .contiguous() and layout changes";
    return copy->pinned ? "overlap it: a side stream, prefetching"
                        : "pin the memory, copy with non_blocking=True";
  }
  if (const auto* step = std::get_if<OptimizerStep>(&work))
    return step->fused ? "shard the optimizer (ZeRO), or 8-bit states"
                       : "a fused optimizer (fused=True) reads the state once";
  if (std::holds_alternative<OtherKernel>(work))
    return "nobody knows this kernel: calibrate it (maya calibrate)";
  if (std::holds_alternative<TritonKernel>(work)) return "bound by memory: fewer, larger tensors";
  return "bound by memory: fuse it (torch.compile), or lower precision";
}

}  // namespace

std::vector<LargestCost> largest_costs(const job::Job& job, const simulate::Timeline& timeline,
                                       const catalog::Cluster& cluster,
                                       const std::vector<OpUse>& uses, std::size_t most) {
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
    family.example = &op.work;
    family.ns += use.ns * weight;
    family.flops += flops(op.work) * weight;
    for (std::int32_t rank : ranks) family.crosses_nodes |= rank / per_node != ranks[0] / per_node;
    family_of_op[{use.rank_class, use.op}] = &family;
  }

  // The path is of one step; the figures are of the step that is reported.
  double path_ns = 0;
  for (const simulate::CriticalLink& link : timeline.critical_path)
    path_ns += static_cast<double>(link.end_ns - link.start_ns);
  const double scale = path_ns > 0 ? timeline.step_ns / path_ns : 1;

  double host_ns = 0, wait_ns = 0;
  for (const simulate::CriticalLink& link : timeline.critical_path) {
    const double ns = scale * static_cast<double>(link.end_ns - link.start_ns);
    if (link.what == simulate::CriticalLink::What::host) {
      host_ns += ns;
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
  for (const auto& [name, family] : families) add(name, family.path_ns, help(family, cluster));
  add("host (launch-bound)", host_ns,
      "the GPU waits for Python: torch.compile, CUDA graphs, larger batch");
  add("waiting", wait_ns, "fewer synchronizations (.item(), prints), better balance between ranks");
  auto by_time = [](const LargestCost& a, const LargestCost& b) {
    return a.ms != b.ms ? a.ms > b.ms : a.what < b.what;
  };
  std::sort(costs.begin(), costs.end(), by_time);
  // Below a hundredth of the step there is nothing to win. Where the path leaves room (a
  // launch-bound step is all host), the largest work beside it is worth knowing too.
  std::erase_if(costs, [](const LargestCost& cost) { return cost.share < 0.01; });
  if (costs.size() < most && !timeline.critical_path.empty()) {
    std::vector<LargestCost> beside;
    for (const auto& [name, family] : families) {
      const double ns = family.ns / measured_count(job) / std::max(1, job.world_size);
      if (family.path_ns < 0.01 * timeline.step_ns && ns > 0.05 * timeline.step_ns)
        beside.push_back(
            {name + ", hidden", ns / 1e6, ns / timeline.step_ns, help(family, cluster)});
    }
    std::sort(beside.begin(), beside.end(), by_time);
    costs.insert(costs.end(), beside.begin(), beside.end());
  }
  if (costs.size() > most) costs.resize(most);
  return costs;
}

}  // namespace maya::report
