// Time of a kernel that moves data and computes little:
//
//   t = floor + max(traffic, issue, rows, turns)
//   traffic = bytes found in L2 / L2 bandwidth + the rest / DRAM bandwidth
//   issue   = elements · instructions / (SMs · clock · lanes)
//   rows    = waves of row-sized blocks · latency of one row
//   turns   = loads of a thread that wait for each other · latency of one
//
// What fits in L2 was usually just written by the kernel before, so part of it is found there.
#pragma once

#include <array>
#include <string_view>

#include "estimate/chip.h"

namespace maya::estimate {

enum class MemoryFamily : std::uint8_t {
  pointwise,
  strided,
  layer_norm_forward,
  layer_norm_backward,
  rms_norm_forward,
  rms_norm_backward,
  batch_norm_forward,
  batch_norm_backward,
  batch_norm_statistics,
  batch_norm_native_backward,
  group_norm_forward,
  group_norm_backward,
  weight_reduction,
  softmax_forward,
  softmax_backward,
  cross_entropy_forward,
  cross_entropy_backward,
  reduction,
  gather,
  scatter,
  sort,
  scan,
  random,
  dropout,
  pool_forward,
  pool_backward,
  optimizer_fused,
  optimizer_foreach,
  copy,
  fill,
  triton,
  sparse,
  fft,
  other,
  // Kernels of inference engines, known by their name ("vllm::rms_norm", …).
  vllm_rms_norm,
  vllm_silu_and_mul,
  vllm_rotary,
  vllm_embedding,
  count
};
std::string_view name(MemoryFamily family);

struct MemoryShape {
  double read{}, written{};  // bytes, each operand once
  double again{};            // bytes of the input that a multi-pass kernel may read again
  double rereads{};          // bytes it does read again where the rows at work leave L2
  double elements{};         // for the issue limit
  double rows{}, cols{};     // 0: flat
  double loads_in_turn{};    // of a thread, each of which waits for the one before
};

struct MemoryParams {
  double floor_ns{2500};
  double dram_efficiency{0.85};  // of the data sheet, large streams
  double l2_efficiency{0.7};
  double efficiency{1};         // of the family against a plain stream
  double passes{1};             // how much of `again` comes from DRAM once more
  double resident{0.5};         // share of a small working set found in L2
  double keep{0.7};             // share of L2 a working set may have
  double fade{4};               // how fast larger sets lose it: 1 where a loop finds parts again
  double instructions{4};       // per element, 128 lanes an SM
  double row_ns{1500};          // latency of one row's passes
  double row_element_ns{0.15};  // per element of a row, on top
  double load_ns{500};          // one of the loads in turn
  double rows_per_sm{8};        // rows in flight
  double ramp_bytes{0};         // bytes that pass before the stream runs at speed
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("floor_ns", s.floor_ns), f("dram_efficiency", s.dram_efficiency);
    f("l2_efficiency", s.l2_efficiency), f("efficiency", s.efficiency), f("passes", s.passes);
    f("resident", s.resident), f("keep", s.keep), f("fade", s.fade),
        f("instructions", s.instructions);
    f("row_ns", s.row_ns), f("row_element_ns", s.row_element_ns);
    f("rows_per_sm", s.rows_per_sm), f("ramp_bytes", s.ramp_bytes), f("load_ns", s.load_ns);
  }
};

double memory_time(const Chip& chip, const MemoryShape& shape, const MemoryParams& params);

}  // namespace maya::estimate
