// A small ensemble of regression trees that corrects a physical model: it adds up to `bound` to the
// logarithm of the time, never more, so that far from the measured shapes the physics still rules.
//
// Text form, one list of numbers: bound, count, then per tree the number of splits S, S times
// (feature, threshold, left, right), S + 1 leaf values. A child ≥ 0 is a split, -1 - i is leaf i;
// left is taken where feature ≤ threshold. Beside it, `range`: the smallest and largest value the
// fit saw of the first features, which are logarithms of sizes. Outside, the correction halves per
// octave.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "maya/result.h"

namespace maya::estimate {

class Trees {
 public:
  // `features`: how many the model has; a file that refers to others is refused.
  static Result<Trees> parse(std::span<const double> numbers, std::size_t features,
                             std::span<const double> range = {});
  static constexpr std::size_t kLanes = 8;      // trees walked in step
  static constexpr std::size_t kFeatures = 32;  // most a model may have
  bool empty() const { return roots_.empty(); }
  // The factor on the model's time, within exp(±bound).
  double factor(std::span<const double> features) const;

 private:
  // A walk goes to the next node, or `right` nodes on. A leaf stays where it is (its feature is
  // below every value), so that several trees are walked in step, without a branch to guess.
  struct Node {
    float value;            // the threshold; of a leaf, what it adds
    std::uint16_t feature;  // of a leaf: kLeaf
    std::uint16_t right;
  };
  static constexpr std::uint16_t kLeaf = kFeatures;
  double bound_{};
  std::vector<double> range_;
  std::vector<std::uint32_t> roots_;  // a multiple of kLanes: the last ones are empty trees
  std::vector<int> depths_;           // per kLanes trees, the deepest; trees go in order of depth
  std::vector<Node> nodes_;
};

}  // namespace maya::estimate
