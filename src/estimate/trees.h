// A small ensemble of regression trees that corrects a physical model: it adds up to `bound` to the
// logarithm of the time, never more, so that far from the measured shapes the physics still rules.
//
// Text form, one list of numbers: bound, count, then per tree the number of splits S, S times
// (feature, threshold, left, right), S + 1 leaf values. A child ≥ 0 is a split, -1 - i is leaf i;
// left is taken where feature ≤ threshold. Beside it, `range`: the smallest and largest value the
// fit saw of the first features, which are logarithms of sizes. Outside, the correction halves per
// octave.
#pragma once

#include <span>
#include <vector>

#include "estimate/forest.h"
#include "maya/result.h"

namespace maya::estimate {

class Trees {
 public:
  // `features`: how many the model has; a file that refers to others is refused.
  static Result<Trees> parse(std::span<const double> numbers, std::size_t features,
                             std::span<const double> range = {});
  bool empty() const { return forest_.empty(); }
  // The factor on the model's time, within exp(±bound).
  double factor(std::span<const double> features) const;

 private:
  double bound_{};
  std::vector<double> range_;
  Forest forest_;
};

}  // namespace maya::estimate
