// The parameters of the simulated machine, from the catalogue, as integers.
#pragma once

#include <array>
#include <cstdint>

#include "maya/catalog.h"
#include "maya/network.h"
#include "maya/op.h"
#include "maya/simulate.h"
#include "maya/trace.h"

namespace maya::simulate {

// Rates and shares of a GPU are fractions of 2^16, and work is nanoseconds times 2^16. Progress is
// then exact and does not depend on how often it is updated.
inline constexpr std::uint32_t one_shift = 16;
inline constexpr std::uint32_t one = 1u << one_shift;

struct Model {
  double host_scale{1};  // recorded host time → time on the simulated host
  // For work that a program divides among threads: processors for each rank of a machine, and how
  // many of them its memory can feed.
  double cores_per_rank{1}, fed_cores_per_rank{1e9};
  std::array<std::int32_t, 64> call_ns{};  // host time of a call, by trace::Kind
  std::int64_t launch_gap_ns{};            // from the moment work is ready to its start
  std::int64_t graph_gap_ns{};             // the same between nodes of a graph
  std::int64_t callback_ns{};
  std::uint32_t queue_depth{};
  std::uint32_t engines{2};               // copy engines; 1: both directions share one
  std::uint32_t transfer_rate{one};       // rate of kernels beside a transfer, if the user set it
  double memory_gbps{};                   // 0: transfers take no memory bandwidth
  std::uint32_t compute_bandwidth{};      // overlap.compute_bandwidth (maya/simulate.h)
  std::uint32_t communication_rate{one};  // rate of transfers while a kernel runs
  std::uint32_t max_communication_share{one};
  std::uint32_t memory_bound_share{one};
  double host_uncertainty{};   // relative error of recorded host times on another host
  double board_uncertainty{};  // relative error that all work on this board has in common
  bool take_sms{true};         // communication takes SMs from kernels
  bool share_links{true};
  bool persistent_products{};  // GEMM kernels are persistent: one block per SM processes all tiles
  int sms{1}, gpus_per_node{1};
  int max_threads_per_sm{2048}, max_blocks_per_sm{32}, registers_per_sm{65536};
  std::int64_t shared_per_sm{};

  static Model from(const catalog::Cluster& cluster, const Options& options);

  std::int64_t host_ns(std::uint64_t recorded) const {
    double ns = static_cast<double>(recorded) * host_scale + 0.5;
    return static_cast<std::int64_t>(ns < 1e13 ? ns
                                               : 1e13);  // three hours; avoids overflow of sums
  }
  // Recorded host time of a host_gap record, with its parallel part divided among the threads that
  // the simulated host has for it.
  std::uint64_t gap_ns(const trace::Record& gap) const;
  std::int32_t call_cost(trace::Kind kind) const { return call_ns[static_cast<std::size_t>(kind)]; }
  // The share of the SMs that one kernel keeps busy.
  std::uint32_t kernel_share(const Op& op) const;
  // The number of blocks of a matrix product if each of them occupies an SM until it ends; 0: not
  // known.
  std::uint32_t product_blocks(const Work& work) const;
  // The rate of a kernel that can use `share` of the SMs and gets `got`. Blocks of a product that
  // find no free SM wait for others to end. With few blocks, losing one SM in ten halves the rate.
  std::uint32_t rate_on(std::uint32_t got, std::uint32_t share, std::uint32_t blocks) const {
    if (got >= share) return one;
    if (blocks == 0 || got == 0)
      return static_cast<std::uint32_t>((std::uint64_t{got} << one_shift) / share);
    auto waves = [&](std::uint32_t part) {
      auto slots = (std::uint64_t{part} * static_cast<std::uint64_t>(sms) + one / 2) >> one_shift;
      slots = slots > 0 ? slots : 1;
      return (blocks + slots - 1) / slots;
    };
    return static_cast<std::uint32_t>((waves(share) << one_shift) / waves(got));
  }
  std::uint32_t channel_share(int channels) const;
  // The share of the memory bandwidth that a communication takes: outgoing data is read, incoming
  // data is written.
  std::uint32_t memory_share(const network::Load& load, std::int64_t ns) const;
  // The rate of a kernel beside transfers that take `lost` of the memory bandwidth.
  std::uint32_t beside_transfers(std::uint64_t rate, std::uint32_t lost, bool memory_bound) const {
    std::uint64_t part = memory_bound ? lost : std::uint64_t{lost} * compute_bandwidth >> one_shift;
    rate = rate * transfer_rate >> one_shift;
    return static_cast<std::uint32_t>(rate * (one - part) >> one_shift);
  }
  // Whether the work is limited by memory bandwidth and not by arithmetic, so that fewer SMs are
  // enough.
  static bool memory_bound(const Work& work);
};

}  // namespace maya::simulate
