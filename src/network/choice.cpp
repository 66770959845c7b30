#include "network/choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace maya::network {

bool reduces_in_switch(const Collective& op, int capability_major) {
  if (op.kind == CollectiveKind::all_gather) return true;
  if (op.dtype == DType::f8e4m3 || op.dtype == DType::f8e5m2) return capability_major >= 10;
  switch (op.reduce) {
    case ReduceOp::sum:
      return true;
    case ReduceOp::max:
    case ReduceOp::min:
      return op.dtype != DType::f32 && op.dtype != DType::f64;
    default:
      return false;
  }
}

Choice choose(std::span<const Candidate> candidates, const Parameters& parameters,
              const Shape& shape, CollectiveKind kind, double bytes, bool in_switch) {
  constexpr double kThreads = 512;  // of one channel; NCCL_NTHREADS is not modelled
  const Tuner& t = parameters.tuner;
  int log_size = bytes >= 64 ? std::bit_width(static_cast<std::uint64_t>(bytes) >> 6) - 1 : -1;
  Choice best;
  double best_us = 0;
  for (const Candidate& c : candidates) {
    if (!in_switch && (c.algorithm == kNvls || c.algorithm == kNvlsTree)) continue;
    double gbps = c.tuner_gbps, latency = c.tuner_latency_us;
    if (c.algorithm == kTree && log_size >= 0 && log_size < 23)
      gbps *= t.tree_correction[c.protocol][static_cast<std::size_t>(log_size)];
    if (c.algorithm == kRing && c.protocol == kSimple && shape.islands > 1 &&
        kind == CollectiveKind::all_reduce && bytes / (c.channels * shape.ranks) >= 64)
      latency *= t.ring_plateau;
    double us = latency + bytes / (gbps * 1e3);
    if (!best.candidate || us < best_us) best.candidate = &c, best_us = us;
  }
  if (best.candidate) {
    double wanted = std::ceil(bytes / (kThreads * best.candidate->thread_threshold));
    best.channels = static_cast<int>(std::clamp(wanted, 1.0, double(best.candidate->channels)));
  }
  return best;
}

}  // namespace maya::network
