#include "estimate/power.h"

#include <algorithm>
#include <cmath>

namespace maya::estimate {

void limit_power(Chip& chip, const PowerParams& p) {
  chip.dram *= std::clamp(p.stream, 0.5, 1.0);
  if (chip.watts <= 0 || chip.sustained < 1) return;
  // A watt per picojoule and FLOP is a TFLOP/s, which is a thousand FLOPs per ns.
  const double drawn = 1e3 * chip.watts * (1 - std::clamp(p.standing, 0.0, 0.9));
  chip.tensor_limit = drawn / std::max(0.01, p.tensor_pj);
  chip.narrow = std::clamp(p.narrow, 0.1, 1.0);
  chip.plain_limit = drawn / std::max(0.01, p.plain_pj);
  chip.tensor_yield = std::clamp(p.tensor_yield, 0.0, 1.0);
  chip.plain_yield = std::clamp(p.plain_yield, 0.0, 1.0);
}

double sustained_share(const Chip& chip, DType type, double rate) {
  const bool tensor = chip.tensor(type);
  double limit = tensor ? chip.tensor_limit : chip.plain_limit;
  if (limit <= 0) return 1;
  // Twice the bits cost twice the energy: what counts is how near its own peak a type runs. Half of
  // them cost more than half: the sums are as wide as before.
  if (tensor)
    limit *= chip.rate(type) / chip.rate(DType::f16) * (bytes(type) < 2 ? chip.narrow : 1);
  if (type == DType::f64) limit /= 2;
  return rate <= limit ? 1 : std::pow(limit / rate, tensor ? chip.tensor_yield : chip.plain_yield);
}

}  // namespace maya::estimate
