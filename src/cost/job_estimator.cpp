#include "cost/job_estimator.h"

#include <algorithm>
#include <cmath>

#include "estimate/attention_model.h"

namespace maya::cost {

JobEstimator::JobEstimator(const estimate::Estimator& alone, const catalog::Cluster& cluster)
    : alone_(alone),
      memory_gbps_(cluster.gpu.memory_gbps),
      gap_ns_(cluster.host.graph_node_us * 1e3),
      peak_tflops_(cluster.gpu.peak_tflops) {
  auto number = [&](const char* key, double fallback) {
    const auto it = cluster.extra.find(key);
    return it == cluster.extra.end() ? fallback : it->second;
  };
  products_ = std::clamp(number("power.products", 1), 0.3, 1.0);
  yield_ = std::clamp(number("power.job_yield", 1), 0.0, 1.0);
  // A watt per picojoule and FLOP is a TFLOP/s.
  if (const double energy = number("power.job_pj", 0); energy > 0)
    limit_tflops_ = cluster.gpu.tdp_watts / energy;
}

DType JobEstimator::arithmetic(const Work& work) const {
  const DType recorded = compute_type(work);
  const auto* product = std::get_if<Gemm>(&work);
  if (!product || recorded != DType::f32 || bytes(product->a) > 2) return recorded;
  const auto own = peak_tflops_.find(product->a);
  return own != peak_tflops_.end() && own->second > 0 ? product->a : recorded;
}

double JobEstimator::older(DType type, double tflops) const {
  constexpr double near_peak = 0.75;  // what the best kernels reach
  const auto peak = peak_tflops_.find(type);
  if (peak == peak_tflops_.end() || peak->second <= 0) return 1;
  return 1 + (1 / products_ - 1) * std::clamp(tflops / (near_peak * peak->second), 0.0, 1.0);
}

double JobEstimator::cool(DType type, double tflops) const {
  const auto peak = peak_tflops_.find(type), wide = peak_tflops_.find(DType::bf16);
  if (limit_tflops_ <= 0 || peak == peak_tflops_.end() || wide == peak_tflops_.end() ||
      peak->second <= 0)
    return 1;
  // Fewer bits cost as much less as their peak is higher.
  const double over = tflops * wide->second / peak->second / limit_tflops_;
  return over <= 1 ? 1 : std::pow(over, yield_);
}

double JobEstimator::keys_from_memory_ns(const Work& work) const {
  const auto* w = std::get_if<Attention>(&work);
  if (!w || memory_gbps_ <= 0 || !estimate::is_decoding(*w) || w->window > 0) return 0;
  return bytes_moved(work) / memory_gbps_;
}

double JobEstimator::longer(const Work& work, const estimate::Estimate& alone) const {
  const bool product = std::holds_alternative<Gemm>(work);
  // Attention of older models is at its level in jobs: it was fitted to long runs.
  const bool attention = alone.cool && std::holds_alternative<Attention>(work);
  // What somebody measured on the user's own GPU stands.
  if (alone.ns <= 0 || alone.origin == estimate::Origin::measured) return 1;
  if (const double least = keys_from_memory_ns(work); least > alone.ns) return least / alone.ns;
  if (!product && !attention) return 1;
  const DType type = arithmetic(work);
  if (bytes(type) > 2) return 1;
  const double tflops = flops(work) / alone.ns / 1e3;
  return alone.cool ? cool(type, tflops) : older(type, tflops);
}

estimate::Estimate JobEstimator::operator()(const Op& op) const {
  estimate::Estimate e = alone_(op);
  double factor = longer(op.work, e);
  if (e.cool && e.origin != estimate::Origin::measured && e.ns > 0)
    factor *= 1 - std::min(gap_ns_ / (e.ns * factor), 0.5);
  e.ns *= factor, e.low_ns *= factor, e.high_ns *= factor;
  return e;
}

}  // namespace maya::cost
