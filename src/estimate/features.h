// What the corrections look at: dimensionless logarithms, so that a correction learned on one part
// and size means the same on another.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "estimate/conv_model.h"
#include "estimate/gemm_model.h"
#include "estimate/memory_model.h"

namespace maya::estimate {

using GemmFeatures = std::array<double, 24>;
inline GemmFeatures gemm_features(const Chip& chip, const GemmShape& s, const GemmDetail& d) {
  const double waves = s.m * s.n * s.batch / (128 * 128 * chip.sms);
  GemmFeatures f{std::log2(s.m),
                 std::log2(s.n),
                 std::log2(s.k),
                 std::log2(s.batch),
                 std::log2(waves),
                 std::log2(d.compute_ns / d.memory_ns),
                 d.waves / std::ceil(d.waves),
                 std::log2(d.waves),
                 s.m / (256 * std::ceil(s.m / 256)),
                 s.n / (256 * std::ceil(s.n / 256))};
  // How far behind the winner each other tile is: the library's own choice is a guess as well.
  for (std::size_t i = 0; i < d.by_tile.size(); ++i)
    f[10 + i] = d.by_tile[i] > 0 ? std::log2(d.by_tile[i] / d.ns) : 4;
  f[23] = std::log2(d.ns);  // long kernels run into the power limit
  return f;
}

using MemoryFeatures = std::array<double, 4>;
inline MemoryFeatures memory_features(const Chip& chip, const MemoryShape& s) {
  return {std::log2((s.read + s.written) / chip.l2_bytes), std::log2(1 + s.rows / chip.sms),
          std::log2(1 + s.cols), s.rows > 0 ? std::fmod(s.cols, 4) : 0.0};
}

using ConvFeatures = std::array<double, 12>;
inline ConvFeatures conv_features(const Chip& chip, const Convolution& w, const ConvDetail& d) {
  auto l = [](double v) { return std::log2(std::max(1e-3, v)); };
  const double points =
      static_cast<double>(w.n) * static_cast<double>(w.out_d() * w.out_h() * w.out_w());
  // How far behind the winner each other way is: the library's own choice is a guess as well.
  auto behind = [&](double ns) { return ns > 0 ? l(ns / d.ns) : 4; };
  return {l(static_cast<double>(w.c)),
          l(static_cast<double>(w.k)),
          l(static_cast<double>(w.n)),
          l(static_cast<double>(w.h)),
          l(points * static_cast<double>(w.k) / (16384 * chip.sms)),
          l(d.gemm.waves),
          l(d.gemm.compute_ns / std::max(1.0, d.gemm.memory_ns)),
          std::fmod(static_cast<double>(w.c), 32) / 32,
          std::fmod(static_cast<double>(w.k), 32) / 32,
          behind(d.direct_ns),
          behind(d.fused_ns),
          behind(d.staged_ns)};
}

}  // namespace maya::estimate
