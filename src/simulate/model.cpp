#include "simulate/model.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace maya::simulate {
namespace {

std::uint32_t fraction(double value) {
  return static_cast<std::uint32_t>(std::lround(std::clamp(value, 1.0 / one, 1.0) * one));
}

}  // namespace

bool Model::memory_bound(const Work& work) {
  return !std::holds_alternative<Gemm>(work) && !std::holds_alternative<Convolution>(work) &&
         !std::holds_alternative<Attention>(work) && !std::holds_alternative<Rnn>(work) &&
         !std::holds_alternative<Solver>(work) && !std::holds_alternative<OtherKernel>(work) &&
         !std::holds_alternative<TritonKernel>(work);
}

// Parallel work is taken to be limited by memory bandwidth once its threads use all of it: so are
// optimizers on the CPU, which have the most of it.
std::uint64_t Model::gap_ns(const trace::Record& gap) const {
  const double own = static_cast<double>(gap.value) * 1000 + gap.host_ns;
  const int threads = gap.stream;
  if (gap.aux == 0 || threads < 2) return static_cast<std::uint64_t>(own);
  const double parallel = own * gap.aux / 0xffff;
  const bool set = (gap.flags & trace::threads_set) != 0;
  const double wanted = set ? threads : cores_per_rank;
  const double used = std::max(1.0, std::min({wanted, cores_per_rank, fed_cores_per_rank}));
  return static_cast<std::uint64_t>(own - parallel + parallel * threads / used);
}

Model Model::from(const catalog::Cluster& cluster, const Options& options) {
  auto extra = [&](const char* key, double standard) {
    auto it = cluster.extra.find(key);
    return it == cluster.extra.end() ? standard : it->second;
  };
  auto ns = [](double us) {
    return static_cast<std::int32_t>(std::lround(std::clamp(us, 0.0, 1e6) * 1e3));
  };
  using trace::Kind;
  Model m;
  const catalog::Host& host = cluster.host;
  m.host_scale = extra("host.recorded_speed", 1) / (host.speed > 0 ? host.speed : 1);
  const double ranks = std::max(1.0, extra("host.ranks", std::max(1, cluster.gpus_per_node)));
  m.cores_per_rank = std::max(1.0, host.cores / ranks);
  if (host.core_gbps > 0 && host.memory_gbps > 0)
    m.fed_cores_per_rank = std::max(1.0, host.memory_gbps / host.core_gbps / ranks);
  auto cost = [&](Kind kind, double us) { m.call_ns[static_cast<std::size_t>(kind)] = ns(us); };
  for (Kind kind :
       {Kind::launch, Kind::fill, Kind::collective, Kind::point_to_point, Kind::host_function})
    cost(kind, host.launch_us);
  cost(Kind::group_end, host.launch_us);
  cost(Kind::copy, host.memcpy_us);
  cost(Kind::graph_launch, host.graph_launch_us);
  for (Kind kind : {Kind::event_record, Kind::stream_wait_event, Kind::event_query})
    cost(kind, host.event_us);
  for (Kind kind : {Kind::event_synchronize, Kind::stream_synchronize, Kind::device_synchronize})
    cost(kind, host.sync_us);
  cost(Kind::allocate, host.malloc_us);
  cost(Kind::release, host.free_us);
  m.launch_gap_ns = ns(cluster.gpu.launch_latency_us);
  m.graph_gap_ns = ns(host.graph_node_us);
  m.callback_ns = std::max(1, ns(extra("host.callback_us", 10)));
  m.queue_depth = static_cast<std::uint32_t>(std::max(1, host.launch_queue_depth));
  m.engines = cluster.gpu.copy_engines >= 2 ? 2 : 1;
  double slow = options.compute_slowdown_under_communication;
  m.take_sms = slow < 0;
  m.transfer_rate = fraction(1 / (1 + std::max(0.0, slow)));
  m.memory_gbps = slow < 0 ? cluster.gpu.memory_gbps : 0;
  m.compute_bandwidth = fraction(extra("overlap.compute_bandwidth", 0.65));
  m.communication_rate =
      fraction(1 / (1 + std::max(0.0, extra("overlap.communication_slowdown", 0.02))));
  m.max_communication_share =
      fraction(std::clamp(extra("overlap.max_communication_share", 0.5), 0.0, 0.95));
  m.memory_bound_share = fraction(extra("overlap.memory_bound_share", 0.6));
  m.host_uncertainty =
      std::clamp(extra("host.uncertainty", extra("uncertainty.host", 0.1)), 0.0, 1.0);
  m.board_uncertainty = std::clamp(extra("uncertainty.board", 0), 0.0, 1.0);
  m.share_links = extra("overlap.share_links", 1) != 0;
  const catalog::Gpu& gpu = cluster.gpu;
  m.sms = std::max(1, gpu.sms);
  m.persistent_products = gpu.capability_major >= 9 && extra("overlap.persistent_products", 1) != 0;
  m.gpus_per_node = std::max(1, cluster.gpus_per_node);
  if (gpu.max_threads_per_sm > 0) m.max_threads_per_sm = gpu.max_threads_per_sm;
  if (gpu.max_blocks_per_sm > 0) m.max_blocks_per_sm = gpu.max_blocks_per_sm;
  if (gpu.registers_per_sm > 0) m.registers_per_sm = gpu.registers_per_sm;
  m.shared_per_sm = gpu.shared_per_sm;
  return m;
}

std::uint32_t Model::product_blocks(const Work& work) const {
  const auto* gemm = std::get_if<Gemm>(&work);
  if (gemm == nullptr || gemm->m <= 0 || gemm->n <= 0) return 0;
  // The tile size of most library kernels.
  auto tiles = [](std::int64_t size) {
    const std::int64_t count = (size + 127) / 128;
    return static_cast<double>(count);
  };
  double blocks =
      tiles(gemm->m) * tiles(gemm->n) * static_cast<double>(std::max<std::int64_t>(1, gemm->batch));
  // Split-K: a long sum is divided among SMs that would otherwise be idle.
  if (blocks < sms)
    blocks = std::min<double>(
        sms, blocks * static_cast<double>(std::max<std::int64_t>(1, gemm->k / 512)));
  const bool persistent =
      persistent_products && gemm->compute != DType::f32 && gemm->compute != DType::f64;
  return static_cast<std::uint32_t>(std::min(blocks, persistent ? sms : 1e6));
}

std::uint32_t Model::kernel_share(const Op& op) const {
  if (std::uint32_t blocks = product_blocks(op.work); blocks > 0)
    return fraction(static_cast<double>(blocks) / sms);
  std::uint32_t most = memory_bound(op.work) ? memory_bound_share : one;
  const Geometry& g = op.geometry;
  std::uint64_t blocks = g.blocks();
  std::uint64_t threads = std::uint64_t{g.block[0]} * g.block[1] * g.block[2];
  if (blocks == 0 || threads == 0) return most;  // library calls have no launch geometry
  std::uint64_t per_sm =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(max_blocks_per_sm),
                              static_cast<std::uint64_t>(max_threads_per_sm) / threads);
  if (g.registers > 0)
    per_sm = std::min<std::uint64_t>(
        per_sm, static_cast<std::uint64_t>(registers_per_sm) / (g.registers * threads));
  if (g.shared_bytes > 0 && shared_per_sm > 0)
    per_sm =
        std::min<std::uint64_t>(per_sm, static_cast<std::uint64_t>(shared_per_sm) / g.shared_bytes);
  double resident = static_cast<double>(std::max<std::uint64_t>(1, per_sm)) * sms;
  return std::min(most, fraction(static_cast<double>(blocks) / resident));
}

std::uint32_t Model::memory_share(const network::Load& load, std::int64_t ns) const {
  if (!(memory_gbps > 0) || ns <= 0) return 0;
  double bytes = 0;
  for (network::Port port :
       {network::link_out, network::link_in, network::card_out, network::card_in})
    bytes += load.weight[port] * load.bytes;
  double share = bytes / static_cast<double>(ns) / memory_gbps;
  return static_cast<std::uint32_t>(std::lround(std::clamp(share, 0.0, 0.5) * one));
}

std::uint32_t Model::channel_share(int channels) const {
  if (channels <= 0 || !take_sms) return 0;
  return std::min(max_communication_share, fraction(static_cast<double>(channels) / sms));
}

}  // namespace maya::simulate
