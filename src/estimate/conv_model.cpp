#include "estimate/conv_model.h"

#include <algorithm>
#include <cmath>

namespace maya::estimate {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

double padded(double channels, double to) {
  return to > 0 ? std::ceil(channels / to) * to : channels;
}

// A block does 32 tiles of 2×2 outputs of 32 channels: 16 small products, 128×128 in all. The tiles
// lie in one image or in several.
double fused_winograd(const Chip& chip, const Convolution& w, Direction direction,
                      const ConvParams& p, const GemmParams& gemm) {
  if (p.fused <= 0) return 0;
  const bool data = direction == Direction::data_gradient;
  const double c = d(data ? w.k : w.c), k = d(data ? w.c : w.k);
  const double high = d(data ? w.h : w.out_h()), wide = d(data ? w.w : w.out_w());
  constexpr double kPacks[][3] = {{1, 8, 16}, {2, 4, 16}, {4, 2, 16}, {2, 8, 8}, {4, 4, 8}};
  double blocks = 1e300;
  for (auto [images, rows, columns] : kPacks)
    blocks = std::min(
        blocks, std::ceil(d(w.n) / images) * std::ceil(high / rows) * std::ceil(wide / columns));
  const double size = std::max(4.0, bytes(w.dtype));
  GemmShape s;
  s.compute = w.compute;
  s.m = 128 * blocks, s.n = 128 * std::ceil(k / 32), s.k = c;
  s.bytes_a = 1.4 * size, s.bytes_b = 2.25 * size, s.bytes_d = size / 4;
  GemmParams adjusted = gemm;
  adjusted.efficiency *= p.fused;
  adjusted.tiles = 4;  // 128×128
  adjusted.hide = p.hide;
  adjusted.max_split = 1;
  return gemm_time(chip, s, adjusted).ns;
}

double staged_winograd(const Chip& chip, const Convolution& w, Direction direction,
                       const ConvParams& p, const GemmParams& gemm, const MemoryParams& memory) {
  if (p.staged <= 0) return 0;
  const bool data = direction == Direction::data_gradient;
  const double high = d(data ? w.h : w.out_h()), wide = d(data ? w.w : w.out_w());
  // Half precision without tensor cores is computed in f32.
  const double c = d(w.c), k = d(w.k), size = std::max(4.0, bytes(w.dtype));
  const double taps = d(w.kh) * d(w.kw);
  const double side = 3 + d(w.kh);  // of the transformed tile: 6×6, 8×8
  const double points = side * side, tiles = d(w.n) * std::ceil(high / 4) * std::ceil(wide / 4);
  GemmShape s;
  s.compute = w.compute;
  s.batch = points;
  s.bytes_a = s.bytes_b = s.bytes_d = size;
  if (direction == Direction::weight_gradient)
    s.m = k, s.n = c, s.k = tiles;
  else
    s.m = tiles, s.n = data ? c : k, s.k = data ? k : c;
  GemmParams adjusted = gemm;
  adjusted.efficiency *= p.staged;
  MemoryParams stream = memory;
  stream.efficiency *= p.stages;
  // Each of the three operands passes from its plain to its transformed form or back.
  auto transform = [&](double plain, double transformed) {
    MemoryShape shape;
    shape.read = plain * size, shape.written = transformed * size, shape.elements = transformed;
    return memory_time(chip, shape, stream);
  };
  return gemm_time(chip, s, adjusted).ns +
         transform(d(w.n) * d(w.h) * d(w.w) * c, points * tiles * c) +
         transform(d(w.n) * d(w.out_h() * w.out_w()) * k, points * tiles * k) +
         transform(taps * c * k, points * c * k);
}

double one_direction(const Chip& chip, const Convolution& w, Direction direction,
                     const ConvParams& p, const GemmParams& gemm, const MemoryParams& memory,
                     ConvDetail& detail) {
  const double groups = std::max(1, w.groups);
  const double c = static_cast<double>(w.c) / groups, k = static_cast<double>(w.k) / groups;
  const bool tensor = chip.tensor(w.compute);
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

  if (depthwise(w)) {
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
  // Channels of the sum and of the output, and what they are padded to.
  const bool weights = direction == Direction::weight_gradient;
  const double sum = direction == Direction::data_gradient ? k : c;
  const double out = direction == Direction::data_gradient ? c : k;
  double full_sum = sum, full_out = out;
  if (tensor && weights && p.weight_tile > 0) {
    full_sum = padded(sum, p.weight_tile), full_out = padded(out, p.weight_tile);
  } else if (tensor) {
    full_sum = padded(sum, weights ? 8 : p.channel_slice);
    full_out = padded(out, weights ? 8 : p.channel_tile);
  }
  switch (direction) {
    case Direction::data_gradient:
      s.m = in_points, s.n = full_out, s.k = full_sum * taps / stride;
      // Windows that overlap unevenly under a stride: each input point sees another set of taps.
      factor = p.data_gradient * (stride > 1 ? p.strided_data : 1);
      a_bytes = out_bytes, d_bytes = in_bytes;
      break;
    case Direction::weight_gradient:
      s.m = full_out, s.n = full_sum * taps, s.k = out_points;
      factor = p.weight_gradient;
      a_bytes = out_bytes, d_bytes = weight_bytes;
      break;
    default:
      s.m = out_points, s.n = full_out, s.k = full_sum * taps;
      break;
  }
  if (taps == 1) factor *= p.pointwise;
  if (groups > 1 && tensor && w.layout == Layout::channels_last)
    factor *= c <= 32 && groups >= 16 ? p.grouped_last : p.grouped_slow;
  else if (groups > 1)
    factor *= p.grouped;
  else if (tensor && std::min(c, k) >= 8 && (std::fmod(c, 8) != 0 || std::fmod(k, 8) != 0))
    factor *= p.unaligned;  // no wide loads
  // Overlapping windows are read once from DRAM and again from L2: the operand counts once. A
  // stride skips elements, not the memory lines they lie in. Padding is not in memory.
  const double most_read = size * w.stride_w;
  if (!weights)
    s.bytes_a = std::min(most_read, a_bytes / (s.m * s.k * s.batch));
  else
    s.bytes_b = std::min(most_read, in_bytes / (s.k * s.n * s.batch));
  (weights ? s.bytes_a : s.bytes_d) *= out / full_out;
  GemmParams adjusted = gemm;
  // Gathering windows costs instructions that do not get faster with the tensor cores: the rate of
  // an SM and clock is bounded, whatever the peak.
  const double most = p.sm_flops * 2 / bytes(w.compute) * chip.sms * chip.clock;
  adjusted.efficiency = tensor ? std::min(gemm.efficiency, most / chip.rate(w.compute)) * factor
                               : gemm.efficiency * factor;
  adjusted.max_split = weights ? 32 : p.split;
  if (p.tiles > 0) adjusted.tiles = p.tiles;
  if (!tensor) {
    // The direct kernels of cuDNN: 128 points by 128, 64 or 32 channels; only sums over all points
    // are split.
    adjusted.tiles = 4 + 32 + 256;
    if (direction != Direction::weight_gradient) adjusted.max_split = 1;
    adjusted.hide = p.hide;
  }
  detail.gemm = gemm_time(chip, s, adjusted);
  double ns = detail.direct_ns = std::max(p.floor_ns, detail.gemm.ns);
  if (!tensor && groups == 1 && stride == 1 && w.kd == 1 && w.dilation_h == 1 &&
      w.dilation_w == 1 && w.kh == w.kw && (w.kh == 3 || w.kh == 5)) {
    detail.fused_ns = w.kh == 3 && direction != Direction::weight_gradient
                          ? fused_winograd(chip, w, direction, p, gemm)
                          : 0;
    detail.staged_ns = staged_winograd(chip, w, direction, p, gemm, memory);
    for (double other : {detail.fused_ns, detail.staged_ns})
      if (other > 0) ns = std::min(ns, std::max(p.floor_ns, other));
  }
  if (tensor && weights) ns += p.weight_partial * k * c * taps * groups / dram;
  if (tensor && w.layout == Layout::channels_first && p.transform > 0) {
    // Of a weight gradient's two inputs the smaller one: the kernel takes the other as it is.
    double converted =
        weights ? std::min(in_bytes, out_bytes) : a_bytes + p.transform_output * d_bytes;
    if (taps == 1 && !weights) converted *= p.transform_pointwise;
    ns += 2 * converted / (dram * p.transform);
  }
  return ns;
}

}  // namespace

bool depthwise(const Convolution& w) {
  return w.groups > 1 && w.c <= 4 * w.groups && w.k <= 8 * w.groups;
}

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
