// What a board's power leaves of a chip's rate. In matrix products without pause a chip may draw
// more than its board allows; the clock then falls until it does not. With an energy per FLOP and a
// part of the limit that is drawn whatever the chip does, the limit is a rate; how far a kernel
// that could run faster falls back towards it depends on how much of the time such kernels run and
// on the voltage that falls with the clock.
#pragma once

#include "estimate/chip.h"

namespace maya::estimate {

struct PowerParams {
  double stream{1};       // of the data sheet's bandwidth: ECC in GDDR takes the rest
  double tensor_pj{1.2};  // energy of a 16-bit FLOP in tensor cores, all that feeds them included
  double narrow{1};       // rate within the limit in 8 bits and fewer, against what the peak says
  double plain_pj{8};     // of one in plain arithmetic
  double standing{0.2};   // of the limit: memory, leakage, fans
  double tensor_yield{0.6};  // 1: at most the limit's rate, 0: all such a kernel could do
  double plain_yield{0.8};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("stream", s.stream), f("tensor_pj", s.tensor_pj), f("narrow", s.narrow);
    f("plain_pj", s.plain_pj);
    f("standing", s.standing), f("tensor_yield", s.tensor_yield), f("plain_yield", s.plain_yield);
  }
};

// Sets the chip's bandwidth and its limits. A sheet that says what clock is sustained is believed
// instead.
void limit_power(Chip& chip, const PowerParams& params);

// Share of `rate` (FLOPs per ns of this type, the whole chip) that the board sustains.
double sustained_share(const Chip& chip, DType type, double rate);

}  // namespace maya::estimate
