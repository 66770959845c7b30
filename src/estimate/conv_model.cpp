#include "estimate/conv_model.h"

#include <algorithm>
#include <cmath>

namespace maya::estimate {
namespace {

double one_direction(const Chip& chip, const Convolution& w, Direction direction,
                     const ConvParams& p, const GemmParams& gemm, const MemoryParams& memory,
                     ConvDetail& detail) {
  const double groups = std::max(1, w.groups);
  const double c = static_cast<double>(w.c) / groups, k = static_cast<double>(w.k) / groups;
  const double taps = static_cast<double>(w.kd) * w.kh * w.kw;
  const double in_points = static_cast<double>(w.n) * static_cast<double>(w.d * w.h * w.w);
  const double out_points =
      static_cast<double>(w.n) * static_cast<double>(w.out_d() * w.out_h() * w.out_w());
  const double size = bytes(w.dtype);
  const double in_bytes = in_points * static_cast<double>(w.c) * size;
  const double out_bytes = out_points * static_cast<double>(w.k) * size;
  const double weight_bytes = k * c * taps * groups * size;
  const double stride = static_cast<double>(w.stride_d) * w.stride_h * w.stride_w;
  const double dram = chip.dram * memory.dram_efficiency;
  const double flops = 2 * out_points * k * c * taps * groups;

  if (groups > 1 && c <= 4 && k <= 8) {
    double traffic = (in_bytes + out_bytes + weight_bytes) / (dram * p.depthwise);
    double compute = flops / (chip.rate(DType::f32) * p.depthwise_flops);
    if (direction == Direction::weight_gradient) compute /= p.depthwise_weight;
    if (w.layout == Layout::channels_last && std::max(w.kh, w.kw) > 5) compute /= p.depthwise_wide;
    const double slow = w.layout == Layout::channels_last ? 1 : 1 / p.depthwise_first;
    return p.floor_ns + slow * std::max(traffic, compute);
  }

  GemmShape s;
  s.compute = w.compute;
  s.batch = groups;
  s.bytes_a = s.bytes_b = s.bytes_d = size;
  double factor = p.forward;
  double a_bytes = in_bytes, d_bytes = out_bytes;
  switch (direction) {
    case Direction::data_gradient:
      s.m = in_points, s.n = c, s.k = k * taps / stride;
      // Windows that overlap unevenly under a stride: each input point sees another set of taps.
      factor = p.data_gradient * (stride > 1 && taps > 1 ? p.strided_data : 1);
      a_bytes = out_bytes, d_bytes = in_bytes;
      break;
    case Direction::weight_gradient:
      s.m = k, s.n = c * taps, s.k = out_points;
      factor = p.weight_gradient;
      a_bytes = out_bytes, d_bytes = weight_bytes;
      break;
    default:
      s.m = out_points, s.n = k, s.k = c * taps;
      break;
  }
  if (taps == 1) factor *= p.pointwise;
  const bool tensor = chip.tensor(w.compute);
  // Padding to eight channels, or a kernel without wide loads.
  if (groups > 1 && tensor && w.layout == Layout::channels_last)
    factor *= c <= 32 && groups >= 16 ? p.grouped_last : p.grouped_slow;
  else if (groups > 1)
    factor *= p.grouped;
  else if (tensor && (std::fmod(c, 8) != 0 || std::fmod(k, 8) != 0))
    factor *= p.unaligned;
  const bool winograd = !tensor && w.kh == 3 && w.kw == 3 && w.kd == 1 && stride == 1 &&
                        w.dilation_h == 1 && w.dilation_w == 1 && groups == 1 && c >= 16;
  if (winograd) s.aligned = p.winograd;
  // Overlapping windows are read once from DRAM and again from L2: the operand counts once.
  if (direction != Direction::weight_gradient)
    s.bytes_a = std::min(size, a_bytes / (s.m * s.k * s.batch));
  else
    s.bytes_b = std::min(size, in_bytes / (s.k * s.n * s.batch));
  GemmParams adjusted = gemm;
  // Gathering windows costs instructions that do not get faster with the tensor cores: the rate of
  // an SM and clock is bounded, whatever the peak.
  const double most = p.sm_flops * 2 / bytes(w.compute) * chip.sms * chip.clock;
  adjusted.efficiency = tensor ? std::min(gemm.efficiency, most / chip.rate(w.compute)) * factor
                               : gemm.efficiency * factor;
  adjusted.max_split = 32;
  detail.gemm = gemm_time(chip, s, adjusted);
  double ns = std::max(p.floor_ns, detail.gemm.ns);
  if (tensor && w.layout == Layout::channels_first && p.transform > 0)
    ns += 2 * (a_bytes + d_bytes) / (dram * p.transform);
  return ns;
}

}  // namespace

ConvDetail conv_time(const Chip& chip, const Convolution& w, const ConvParams& p,
                     const GemmParams& gemm, const MemoryParams& memory) {
  ConvDetail detail;
  if (w.direction == Direction::backward) {
    detail.ns = one_direction(chip, w, Direction::data_gradient, p, gemm, memory, detail) +
                one_direction(chip, w, Direction::weight_gradient, p, gemm, memory, detail);
  } else {
    detail.ns = one_direction(chip, w, w.direction, p, gemm, memory, detail);
  }
  return detail;
}

}  // namespace maya::estimate
