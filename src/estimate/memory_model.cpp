#include "estimate/memory_model.h"

#include <algorithm>
#include <cmath>

namespace maya::estimate {

std::string_view name(MemoryFamily family) {
  static constexpr std::string_view names[] = {"pointwise",
                                               "strided",
                                               "layer_norm_forward",
                                               "layer_norm_backward",
                                               "rms_norm_forward",
                                               "rms_norm_backward",
                                               "batch_norm_forward",
                                               "batch_norm_backward",
                                               "batch_norm_statistics",
                                               "batch_norm_native_backward",
                                               "group_norm_forward",
                                               "group_norm_backward",
                                               "weight_reduction",
                                               "softmax_forward",
                                               "softmax_backward",
                                               "cross_entropy_forward",
                                               "cross_entropy_backward",
                                               "reduction",
                                               "gather",
                                               "scatter",
                                               "sort",
                                               "scan",
                                               "random",
                                               "dropout",
                                               "pool_forward",
                                               "pool_backward",
                                               "optimizer_fused",
                                               "optimizer_foreach",
                                               "copy",
                                               "fill",
                                               "triton",
                                               "sparse",
                                               "fft",
                                               "other",
                                               "vllm_rms_norm",
                                               "vllm_silu_and_mul",
                                               "vllm_rotary",
                                               "vllm_embedding"};
  static_assert(std::size(names) == static_cast<std::size_t>(MemoryFamily::count));
  return names[static_cast<std::size_t>(family)];
}

double memory_time(const Chip& chip, const MemoryShape& s, const MemoryParams& p) {
  // Two blocks an SM, a row each; less than half of L2 holds rows that are read again.
  const bool leaves = s.rereads > 0 && s.read / s.rows * 2 * chip.sms > 0.45 * chip.l2_bytes;
  const double bytes = s.read + s.written + (leaves ? s.rereads : p.passes * s.again);
  const double set = s.read + s.written;
  const double dram = chip.dram * p.dram_efficiency * p.efficiency;
  const double l2 = std::max(dram, chip.l2 * p.l2_efficiency * p.efficiency);
  const double ratio = set / (p.keep * chip.l2_bytes);
  const double r2 = ratio * ratio;
  const double hit = p.resident / (1 + (p.fade == 4 ? r2 * r2 : std::pow(ratio, p.fade)));
  double traffic = bytes * (hit / l2 + (1 - hit) / dram) + p.ramp_bytes / dram;

  const double issue = s.elements * p.instructions / (chip.sms * 128 * chip.clock);
  double rows = 0;
  if (s.rows > 0) {
    const double waves = std::ceil(s.rows / (chip.sms * p.rows_per_sm));
    rows = waves * (p.row_ns + p.row_element_ns * s.cols);
  }
  // Nothing moves bytes faster than the data sheet says, once they cannot be in L2.
  const double limit = std::max(0.0, set - chip.l2_bytes) / chip.dram;
  const double turns = s.loads_in_turn * p.load_ns;
  return std::max(p.floor_ns + std::max({traffic, issue, rows, turns}), limit);
}

}  // namespace maya::estimate
