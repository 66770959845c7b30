// A launch: which of its threads are run, and how many each stands for.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "decode/ptx_machine.h"
#include "decode/ptx_thread.h"

namespace maya::decode::ptx {
namespace {

// Indices along one axis of the grid and how many blocks each stands for. The last one may be cut
// off by a mask and stands for itself.
struct Axis {
  std::vector<std::uint32_t> at;
  std::vector<double> weight;
  bool sampled{};  // blocks differ along the axis and not all are run
};

Axis axis(std::uint32_t n, bool varies, std::uint32_t samples) {
  Axis a;
  auto add = [&a](std::uint32_t at, double weight) {
    a.at.push_back(at), a.weight.push_back(weight);
  };
  if (n <= 2 || (varies && n <= 2 * samples)) {
    for (std::uint32_t i = 0; i < n; ++i) add(i, 1);
  } else if (!varies) {
    add(0, n - 1);
    add(n - 1, 1);
  } else {
    // The middles of equal stretches: exact where the work grows by the same amount from block to
    // block. The first block counts for nothing but shows where the addresses begin.
    add(0, 0);
    for (std::uint32_t i = 0; i < samples; ++i)
      add(static_cast<std::uint32_t>((2.0 * i + 1) * (n - 1) / (2.0 * samples)),
          static_cast<double>(n - 1) / samples);
    add(n - 1, 1);
    a.sampled = true;
  }
  return a;
}

}  // namespace

Totals count(const Program& program, const Launch& launch) {
  Totals totals;
  const std::vector<Value> arguments = parameter_roots(program, launch);

  const auto& g = launch.geometry;
  auto block_threads = static_cast<std::uint32_t>(g.block[0] * g.block[1] * g.block[2]);
  if (block_threads == 0 || g.blocks() == 0) return totals;
  // At most a few milliseconds of thinking per distinct launch.
  constexpr std::uint64_t budget = 600000, one_thread = 1000000;
  Thread thread(program, launch, arguments, one_thread);
  auto coordinates = [&](std::uint32_t linear) {
    return std::array<std::uint32_t, 3>{linear % g.block[0], linear / g.block[0] % g.block[1],
                                        linear / g.block[0] / g.block[1]};
  };

  Counts probe;
  thread.run({0, 0, 0}, coordinates(0), 1, 1, probe);
  thread.expect_bounded_loops(probe.bounded_loops);
  std::uint64_t cost = std::max<std::uint64_t>(1, thread.steps());
  std::uint64_t runs = std::clamp<std::uint64_t>(budget / cost, 16, 8192);

  // Does the work depend on where the block is? Look at a block in the middle and at the last but
  // one.
  const bool steered = std::any_of(probe.steered_by.begin(), probe.steered_by.end(),
                                   [](std::uint64_t bytes) { return bytes > 0; });
  std::array<Axis, 3> axes;
  std::array<bool, 3> varies{};
  int varying = 0;
  for (int d = 0; d < 3; ++d) {
    if (g.grid[d] <= 2) continue;
    for (std::uint32_t t : {0u, block_threads - 1}) {
      Counts ignored;
      Summary base = thread.run({0, 0, 0}, coordinates(t), 0, 0, ignored);
      for (std::uint32_t at : {g.grid[d] / 2, g.grid[d] - 2, g.grid[d] / 3, g.grid[d] / 7}) {
        // Where data decides, any block may differ: look at more of them.
        if (!steered && at != g.grid[d] / 2 && at != g.grid[d] - 2) continue;
        std::array<std::uint32_t, 3> block{};
        block[d] = at;
        varies[d] |= !(thread.run(block, coordinates(t), 0, 0, ignored) == base);
      }
      if (cost > budget / 16) break;
    }
    varying += varies[d];
  }
  std::uint32_t samples = varying <= 1 ? (steered ? 32 : 8) : varying == 2 ? 4 : 3;
  for (int d = 0; d < 3; ++d) axes[d] = axis(g.grid[d], varies[d], samples);
  std::size_t blocks = axes[0].at.size() * axes[1].at.size() * axes[2].at.size();
  auto threads = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(runs / std::max<std::size_t>(1, blocks), 2, block_threads));
  // Whole warps look alike but for their place: spread the sample over lanes and warps.
  std::vector<std::uint32_t> picks;
  if (threads >= block_threads) {
    for (std::uint32_t i = 0; i < block_threads; ++i) picks.push_back(i);
  } else {
    for (std::uint32_t i = 0; i < threads; ++i)
      picks.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) *
                                                 (block_threads - 1) / std::max(1u, threads - 1)));
    if (program.elects)
      for (std::uint32_t i = 0; i < block_threads; i += 32) picks.push_back(i);
    std::sort(picks.begin(), picks.end());
    picks.erase(std::unique(picks.begin(), picks.end()), picks.end());
  }
  bool every_thread = picks.size() == block_threads;

  Counts counts;
  auto run_all = [&] {
    counts = Counts{};
    for (std::size_t z = 0; z < axes[2].at.size(); ++z)
      for (std::size_t y = 0; y < axes[1].at.size(); ++y)
        for (std::size_t x = 0; x < axes[0].at.size(); ++x) {
          double weight = axes[0].weight[x] * axes[1].weight[y] * axes[2].weight[z];
          double elected = weight;
          weight *= static_cast<double>(block_threads) / static_cast<double>(picks.size());
          Summary one;
          bool same = true;
          for (std::size_t i = 0; i < picks.size(); ++i) {
            Summary s = thread.run({axes[0].at[x], axes[1].at[y], axes[2].at[z]},
                                   coordinates(picks[i]), weight, elected, counts);
            if (i == 0) one = s;
            same &= s == one;
          }
          if (!same && !every_thread) counts.exact = false;
        }
  };
  run_all();
  // A mask and its transpose: where some blocks loop over rows that are known and others over
  // columns that are not, the columns have as many entries as the rows.
  if (counts.bounded_loops > 0 && counts.known_loops > 0) {
    thread.expect_share(counts.known_shares / counts.known_loops);
    run_all();
  }
  for (const Axis& a : axes)
    if (a.sampled) counts.exact = false;

  auto unique = [&](const std::array<Traffic, max_roots + 1>& side) {
    double bytes = 0;
    for (int i = 0; i <= max_roots; ++i) {
      const Traffic& t = side[i];
      if (t.bytes <= 0) continue;
      double seen = t.bytes - t.blind;
      if (t.high > t.low) seen = std::min(seen, static_cast<double>(t.high - t.low));
      double blind = t.blind;
      if (blind > 0 && i < max_roots && launch.extent) {
        std::uint64_t word = 0;
        std::memcpy(&word, launch.arguments[i], 8);
        blind = std::min(blind, static_cast<double>(launch.extent(word)));
      }
      bytes += std::max(0.0, seen) + blind;
    }
    return bytes;
  };
  totals.bytes_read = unique(counts.read) + counts.bulk_read;
  totals.bytes_written = unique(counts.written) + counts.bulk_written;
  totals.flops = counts.flops;
  totals.tensor_flops = counts.tensor_flops;
  totals.exact = counts.exact && program.unknown_opcodes == 0;
  totals.loops = counts.bounded_loops > 0 ? Loops::assumed
                 : counts.unknown_loops   ? Loops::unknown
                                          : Loops::counted;
  totals.steered_by.assign(counts.steered_by.begin(), counts.steered_by.end());
  totals.steps = thread.steps();
  return totals;
}

}  // namespace maya::decode::ptx
