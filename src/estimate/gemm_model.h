// Time of a matrix product, from how such kernels run:
//
//   The output is cut in tiles; an SM works on `occupancy` tiles at once; the tiles of a launch go
//   over the SMs in waves, and the last, partly filled wave costs almost as much as a full one. Few
//   tiles and a long reduction: the reduction is split over several tiles, whose sums meet in
//   memory. A tile's time is its FLOPs at the SM's rate (tile-dependent efficiency: smaller tiles
//   reload more), or the time to bring its operands from L2, whichever is longer. The whole cannot
//   be faster than DRAM delivers what is not found in L2. The library picks the tile that is
//   fastest, so the model takes the minimum over the candidates.
#pragma once

#include <array>

#include "estimate/chip.h"

namespace maya::estimate {

struct GemmShape {
  double m{1}, n{1}, k{1}, batch{1};
  double bytes_a{2}, bytes_b{2}, bytes_d{2};
  DType compute{DType::f16};
  bool transpose_a{}, transpose_b{}, accumulate{};
  double aligned{
      1};  // share of the full tensor-core rate the leading dimensions allow: see align_*
  double groups{1};
};

struct GemmParams {
  double floor_ns{2500};    // start, first loads, epilogue of one tile
  double efficiency{0.92};  // of the peak at the sustained clock, in the largest tile's main loop
  double medium{0.95};      // the same for 128×128, against the largest
  double narrow{0.85};      // 128×64 and 256×64, against the largest
  double small{0.65};       // 64×64
  double tiny{0.40};        // a side of 32
  double k_prologue{96};    // main loop start and drain, in units of k
  double epilogue{0.5};     // share of the output tile's store not hidden
  double dram_efficiency{0.80};  // of the data sheet, streaming operands
  double l2_efficiency{0.80};
  double overlap{0.25};         // share of the shorter of compute and memory not hidden
  double tail{0.85};            // cost of a partly filled wave against a full one: 1 is exact
  double split_ns{1500};        // extra start of the reduction after split-K
  double split_bandwidth{0.5};  // of L2, for the partial sums
  double keep{0.6};             // share of L2 that holds operands between waves
  double latency_bytes{24576};  // bytes an SM keeps in flight; bounds a few-tile GEMM
  double sustained{1};          // rate under continuous load against a burst
  double occupancy{2};          // tiles of 128×128 an SM holds at once (registers, shared memory)
  double max_area{32768};       // largest tile
  double min_side{64};          // smallest side of a tile
  double max_split{8};
  double tiles{
      0};  // the tiles this library has, a bit each in the order of kTiles; 0: by area and side
  double swizzle{1};  // 1: a wave covers a square of the output; 0: whole columns, in launch order
  double thin{0.6};   // of DRAM, products that only stream
  double hide{
      0};  // warps an SM needs to reach half its rate; one small tile alone is latency-bound
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("floor_ns", s.floor_ns), f("efficiency", s.efficiency), f("medium", s.medium);
    f("narrow", s.narrow), f("small", s.small), f("tiny", s.tiny);
    f("k_prologue", s.k_prologue), f("epilogue", s.epilogue);
    f("dram_efficiency", s.dram_efficiency), f("l2_efficiency", s.l2_efficiency);
    f("overlap", s.overlap), f("tail", s.tail), f("split_ns", s.split_ns);
    f("split_bandwidth", s.split_bandwidth), f("keep", s.keep);
    f("latency_bytes", s.latency_bytes), f("sustained", s.sustained);
    f("occupancy", s.occupancy), f("max_area", s.max_area), f("min_side", s.min_side);
    f("max_split", s.max_split), f("tiles", s.tiles), f("swizzle", s.swizzle);
    f("hide", s.hide), f("thin", s.thin);
  }
};

// What the winning candidate looked like; the correction's features are made of it.
struct GemmDetail {
  double ns{}, compute_ns{}, memory_ns{}, waves{}, tile_m{}, tile_n{}, split{1}, fill{};
  std::array<double, 13> by_tile{};  // best time with each tile; 0: not tried
  // Two sides so small that the product only streams the third (a Linear over four attention
  // heads): kernels of another kind, that move data.
  bool thin{};
};

GemmDetail gemm_time(const Chip& chip, const GemmShape& shape, const GemmParams& params);

}  // namespace maya::estimate
