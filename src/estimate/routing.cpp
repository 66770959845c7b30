#include "estimate/routing.h"

#include <algorithm>
#include <cmath>

namespace maya::estimate {
namespace {

Routing evenly(double tokens, double top, double local, double ranks) {
  Routing r;
  r.rows = std::ceil(tokens * top / ranks);
  r.hit = std::min(local, r.rows);
  r.most = std::ceil(r.rows / r.hit);
  for (std::size_t i = 0; i < r.tiles.size(); ++i)
    r.tiles[i] = r.hit * std::ceil(r.most / Routing::kTiles[i]);
  return r;
}

// An expert is one of a token's with probability p: its rows are binomial, near enough to Poisson's
// where p is small and to a normal distribution's where there are many.
Routing at_random(double tokens, double top, double experts, double local) {
  const double p = std::min(1.0, top / experts), mean = tokens * p;
  const double deviation = std::sqrt(mean * (1 - p));
  Routing r;
  r.rows = std::max(1.0, tokens * p * local);
  r.hit = std::clamp(local * (1 - std::pow(1 - p, tokens)), 1.0, r.rows);
  r.most = std::clamp(std::ceil(mean + deviation * std::sqrt(2 * std::log(std::max(2.0, local)))),
                      1.0, tokens);
  // Pieces: as many as are started, the last one half full on average where there are several.
  const double each = r.rows / r.hit;
  for (std::size_t i = 0; i < r.tiles.size(); ++i) {
    const double tile = Routing::kTiles[i];
    const double more =
        each > tile ? each / tile + 0.5 : 1 + std::max(0.0, (each + deviation - tile) / tile) / 2;
    r.tiles[i] = r.hit * std::max(1.0, more);
  }
  return r;
}

}  // namespace

Routing route(double tokens, double top, double experts, double ranks, double skew) {
  const double local = std::max(1.0, std::floor(experts / ranks)), all = tokens * top;
  if (skew < 0) return at_random(tokens, top, experts, local);
  if (skew == 0) return evenly(tokens, top, local, ranks);
  // Loads lie between `low` and `high` before they are scaled to the tokens there are.
  const bool many = all > experts;
  const double low = many ? 1 : 0.01, high = many ? std::max(1.001, 0.8 * tokens) : 2;
  const double power = 1 - (std::abs(skew - 1) < 1e-3 ? 1.001 : skew);
  const double from = std::pow(low, power), until = std::pow(high, power);
  constexpr int count = 32;
  std::array<double, count> load;
  double mean = 0, square = 0;
  for (int i = 0; i < count; ++i) {
    load[static_cast<std::size_t>(i)] =
        std::pow(from + (until - from) * (i + 0.5) / count, 1 / power);
    mean += load[static_cast<std::size_t>(i)] / count;
  }
  for (double x : load) square += x * x / count;
  // The busiest of the ranks: so many deviations above the mean, and no more than an expert can be.
  const double deviation = std::sqrt(std::max(0.0, square / (mean * mean) - 1) / local);
  const double above = ranks > 1 ? 0.85 * std::sqrt(2 * std::log(ranks)) : 0;
  const double busiest =
      std::min(1 + deviation * above, std::max(1.0, std::min(high / mean, experts / top)));
  Routing r;
  r.rows = std::clamp(all / ranks * busiest, 1.0, tokens * std::min(top, local));
  r.most = std::min(tokens, high / mean * all / experts);
  for (double x : load) {
    const double rows = std::min(tokens, x / mean * all / experts * busiest);
    r.hit += local / count * std::min(1.0, rows);
    for (std::size_t i = 0; i < r.tiles.size(); ++i)
      r.tiles[i] += local / count * (rows < 1 ? rows : std::ceil(rows / Routing::kTiles[i]));
  }
  r.hit = std::max(1.0, r.hit), r.most = std::max(1.0, r.most);
  for (double& tiles : r.tiles) tiles = std::max(tiles, 1.0);
  return r;
}

}  // namespace maya::estimate
