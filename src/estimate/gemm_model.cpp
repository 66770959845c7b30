#include "estimate/gemm_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "estimate/power.h"

namespace maya::estimate {
namespace {

struct Tile {
  double m, n;
};
// The shapes the libraries ship, wide to narrow.
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256},
                           {128, 64},  {64, 128},  {64, 64},   {128, 32}, {32, 128},
                           {64, 32},   {32, 64},   {32, 32}};
constexpr double kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

bool thin(const GemmShape& s) {
  const double least = std::min({s.m, s.n, s.k}), most = std::max({s.m, s.n, s.k});
  const double middle = s.m + s.n + s.k - least - most;
  return s.bytes_a < 4 && s.batch == 1 && middle <= 32 && most >= 4096;
}

}  // namespace

GemmDetail gemm_time(const Chip& chip, const GemmShape& s, const GemmParams& p) {
  const double rate = chip.rate(s.compute) *
                      (chip.sustained > 1 ? chip.sustained : std::sqrt(chip.sustained)) *
                      p.sustained * s.aligned;
  const double rate_sm = rate / chip.sms * sustained_share(chip, s.compute, rate * p.efficiency);
  const double dram = chip.dram * p.dram_efficiency, l2 = chip.l2 * p.l2_efficiency;
  const double a_bytes = s.m * s.k * s.bytes_a, b_bytes = s.k * s.n * s.bytes_b * s.groups;
  const double d_bytes = s.m * s.n * s.bytes_d * (s.accumulate ? 2 : 1);
  const double compulsory = s.batch * (a_bytes + b_bytes + d_bytes);
  const double l2_keep = chip.l2_bytes * p.keep;
  constexpr double reference = 128 * 128;

  GemmDetail best;
  if (thin(s)) {
    best.thin = true;
    best.memory_ns = compulsory / (chip.dram * p.thin);
    best.ns = p.floor_ns + best.memory_ns;
    best.compute_ns = 2 * s.m * s.n * s.k / chip.rate(s.compute);
    best.waves = best.fill = 1;
    return best;
  }
  best.ns = 1e300;
  for (std::size_t i = 0; i < std::size(kTiles); ++i) {
    const Tile& t = kTiles[i];
    const double area = t.m * t.n;
    if (p.tiles > 0 ? !(static_cast<unsigned>(p.tiles) >> i & 1)
                    : area > p.max_area || std::min(t.m, t.n) < p.min_side)
      continue;
    // A tile wider than the matrix is never better than the next smaller one that covers it.
    const bool wide = (t.m > 64 && t.m >= 2 * s.m && t.m > p.min_side) ||
                      (t.n > 64 && t.n >= 2 * s.n && t.n > p.min_side);
    if (wide && p.tiles <= 0) continue;
    const double rows = std::ceil(s.m / t.m) + (s.groups - 1), columns = std::ceil(s.n / t.n);
    const double tiles = rows * columns * s.batch;
    const double occupancy = std::max(1.0, std::floor(p.occupancy * reference / area));
    const double least = std::min(t.m, t.n);
    const double efficiency = p.efficiency * (least >= 128  ? (area > reference ? 1 : p.medium)
                                              : least < 64  ? p.tiny
                                              : area > 4096 ? p.narrow
                                                            : p.small);
    const double slots = chip.sms * occupancy;
    const double used = std::min(t.m, s.m <= 32 ? std::ceil(s.m / 16) * 16 : t.m) *
                        std::min(t.n, s.n <= 32 ? std::ceil(s.n / 16) * 16 : t.n);

    for (double split : kSplits) {
      if (split > 1 && (split > p.max_split || tiles * split > 2 * slots || s.k / split < 256))
        break;
      const double k = std::ceil(s.k / split / 32) * 32;
      const double count = tiles * split;
      // One tile alone on an SM, at the SM's full rate. A matrix far narrower than the tile gets a
      // kernel cut to it, in steps of the instruction's 16.
      const double mma = 2 * used * (k + std::min(p.k_prologue, k)) / (rate_sm * efficiency);
      // Neighbours of a cluster fetch the operand they share once.
      const double load = (t.m * s.bytes_a / chip.cluster + t.n * s.bytes_b) * k;
      const double store = p.epilogue * area * s.bytes_d / (dram / chip.sms);
      const double one = mma + store;

      const double waves = count / slots;
      const double full = std::floor(waves);
      const double rest = count - full * slots;
      const double deep = std::ceil(rest / chip.sms);  // tiles on the fullest SM in the last wave
      // With fewer tiles than it can hold an SM does not hide latency as well; `tail` between the
      // ideal share and a whole wave.
      const double last = rest > 0 ? (p.tail * deep + (1 - p.tail) * rest / chip.sms) : 0;
      const double warps = area / 2048;  // of one tile
      const double compute = one * (full * (occupancy + p.hide / warps) +
                                    last * (1 + p.hide / (warps * std::max(1.0, deep))));

      // L2 → SM: all loads; fewer SMs at work draw less.
      const double active = std::min(chip.sms, count);
      const double l2_time = count * load / (l2 * std::min(1.0, active / (0.75 * chip.sms)));
      // DRAM: each wave covers a block of the output, as square as it can be or a strip.
      const double per_wave = std::min(count, slots) / split;
      const double square = std::clamp(std::sqrt(per_wave * t.n / t.m), 1.0, rows);
      const double strip = std::clamp(per_wave, 1.0, rows);
      const double side_m = p.swizzle >= 1 ? square : strip + p.swizzle * (square - strip);
      const double side_n = std::clamp(per_wave / side_m, 1.0, columns);
      const double reread_a = a_bytes * columns / side_n, reread_b = b_bytes * rows / side_m;
      const double miss_a = a_bytes / (a_bytes + l2_keep), miss_b = b_bytes / (b_bytes + l2_keep);
      const double traffic = compulsory + s.batch * ((reread_a - a_bytes) * miss_a +
                                                     std::max(0.0, reread_b - b_bytes) * miss_b);
      const double in_flight = active * std::min(occupancy, count / active) * p.latency_bytes;
      const double little = in_flight / 600;  // bytes per ns at a loaded latency of 600 ns
      const double memory = std::max(traffic / std::min(dram, little), l2_time);

      double ns = p.floor_ns + std::max(compute, memory) + p.overlap * std::min(compute, memory);
      if (split > 1)
        ns += p.split_ns + 2 * split * s.m * s.n * s.batch * 4 / (l2 * p.split_bandwidth);
      if (i < best.by_tile.size() && (best.by_tile[i] == 0 || ns < best.by_tile[i]))
        best.by_tile[i] = ns;
      if (ns < best.ns) {
        best.ns = ns;
        best.compute_ns = compute;
        best.memory_ns = memory;
        best.waves = waves;
        best.tile_m = t.m;
        best.tile_n = t.n;
        best.split = split;
        best.fill = waves / (full + (rest > 0 ? 1 : 0));
      }
    }
  }
  // Peak is peak: whatever the parameters say (a short cut like Winograd's raises it).
  const double limit =
      2 * s.m * s.n * s.k * s.batch / (chip.rate(s.compute) * std::max(1.0, s.aligned));
  best.ns = std::max(best.ns, limit);
  return best;
}

}  // namespace maya::estimate
