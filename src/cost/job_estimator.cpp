#include "cost/job_estimator.h"

#include <algorithm>

namespace maya::cost {

JobEstimator::JobEstimator(const estimate::Estimator& alone, const catalog::Cluster& cluster)
    : alone_(alone), peak_tflops_(cluster.gpu.peak_tflops) {
  auto share = [&](const char* key) {
    const auto it = cluster.extra.find(key);
    return std::clamp(it == cluster.extra.end() ? 1.0 : it->second, 0.3, 1.0);
  };
  products_ = share("power.products");
  cool_products_ = share("power.cool_products");
}

double JobEstimator::longer(const Work& work, const estimate::Estimate& alone) const {
  const bool product = std::holds_alternative<Gemm>(work);
  // Attention of older models is at its level in jobs: it was fitted to long runs.
  const bool attention = alone.cool && std::holds_alternative<Attention>(work);
  if ((!product && !attention) || alone.ns <= 0) return 1;
  // What somebody measured on the user's own GPU stands.
  if (alone.origin == estimate::Origin::measured) return 1;
  const DType type = compute_type(work);
  const auto peak = peak_tflops_.find(type);
  const double share = alone.cool ? cool_products_ : products_;
  if (share >= 1 || bytes(type) > 2 || peak == peak_tflops_.end() || peak->second <= 0) return 1;
  constexpr double near_peak = 0.75;  // what the best kernels reach
  const double tflops = flops(work) / alone.ns / 1e3;
  return 1 + (1 / share - 1) * std::clamp(tflops / (near_peak * peak->second), 0.0, 1.0);
}

estimate::Estimate JobEstimator::operator()(const Op& op) const {
  estimate::Estimate e = alone_(op);
  const double factor = longer(op.work, e);
  e.ns *= factor, e.low_ns *= factor, e.high_ns *= factor;
  return e;
}

}  // namespace maya::cost
