// The time of one collective as a function of its size, tabulated once. It never decreases with
// size.
//
// NCCL chooses by its own model of the algorithms, not by their real times. If a formula is wrong
// about one of them, the time would jump at the size where NCCL switches to it. Two rules prevent
// this: the chosen algorithm takes at most kSlack times the time of the best one, and no size is
// faster than a smaller one.
#pragma once

#include <functional>
#include <vector>

namespace maya::network {

class Curve {
 public:
  static constexpr double kSlack = 1.15;

  // `us` returns the time for a size in bytes.
  explicit Curve(const std::function<double(double)>& us);
  double operator()(double bytes) const;

 private:
  static constexpr int kPerDoubling = 4, kDoublings = 46;
  std::vector<double> us_;
};

}  // namespace maya::network
