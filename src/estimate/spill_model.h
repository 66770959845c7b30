// Registers that did not fit and are kept in local memory: every thread's own, so that what is
// resident at a time is far larger than a kernel's data looks. It passes through L1 and L2 on its
// way to DRAM.
#pragma once

#include <algorithm>
#include <cmath>

#include "estimate/chip.h"
#include "maya/op.h"

namespace maya::estimate {

struct SpillParams {
  double l1{1};            // share of an SM's L1 that they may have
  double l2{1};            // likewise of L2
  double l2_rate{0.7};     // of the sheet's L2 bandwidth
  double dram_rate{1.45};  // of the sheet's DRAM bandwidth: some are read for the last time and
                           // never written there
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("l1", s.l1), f("l2", s.l2), f("l2_rate", s.l2_rate), f("dram_rate", s.dram_rate);
  }
};

inline double spill_time(const Chip& chip, const Op& op, const TritonKernel& w,
                         const SpillParams& p) {
  if (w.spilled <= 0 || w.stack <= 0) return 0;
  const Geometry& g = op.geometry;
  const double block = std::max(32.0, static_cast<double>(g.block[0]) * g.block[1] * g.block[2]);
  const double registers_per_sm = 65536;
  const double by_registers =
      g.registers > 0 ? registers_per_sm / (std::ceil(g.registers / 8.0) * 8) : chip.threads_per_sm;
  const double fit = std::min(by_registers, chip.threads_per_sm);
  const double resident = std::min(std::max(1.0, std::floor(fit / block)) * block,
                                   std::ceil(static_cast<double>(g.blocks()) / chip.sms) * block);
  const double of_sm = resident * w.stack;
  const double beyond_l1 = 1 - std::min(1.0, p.l1 * chip.shared_per_sm / of_sm);
  const double in_l2 = std::min(1.0, p.l2 * chip.l2_bytes / (of_sm * chip.sms));
  return static_cast<double>(w.spilled) * beyond_l1 *
         (in_l2 / (chip.l2 * p.l2_rate) + (1 - in_l2) / (chip.dram * p.dram_rate));
}

}  // namespace maya::estimate
