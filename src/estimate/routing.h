// How a router deals tokens over experts: what the busiest rank gets.
#pragma once

#include <array>

namespace maya::estimate {

struct Routing {
  static constexpr std::array<double, 3> kTiles{16, 64, 128};
  double rows{};  // of all experts of the rank together
  double hit{};   // experts that get a row at all: only their weights are read
  double most{};  // rows of the fullest expert
  // Pieces of so many rows (kTiles), the last of each expert padded.
  std::array<double, 3> tiles{};
};

// `skew` 0: evenly. Below 0: every expert is equally likely for each token. Else the loads of
// experts follow a power law of that exponent, as the collectors of the measured tables draw them,
// and `ranks` is over how many the experts are divided.
Routing route(double tokens, double top, double experts, double ranks, double skew);

}  // namespace maya::estimate
