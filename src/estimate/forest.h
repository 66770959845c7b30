// An ensemble of regression trees, walked several at a time: what every learned correction is made
// of. Who evaluates it decides what the sum means.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "maya/result.h"

namespace maya::estimate {

class Forest {
 public:
  static constexpr std::size_t kLanes = 8;      // trees walked in step
  static constexpr std::size_t kFeatures = 48;  // most a model may have

  struct Split {
    std::uint16_t feature;
    float threshold;  // left is taken where feature ≤ threshold
    int left, right;  // indices of splits; a leaf i is splits + i
  };
  // One tree; children come after their parent, so that a walk always ends. False: it does not
  // have the shape of a tree.
  bool add(std::span<const Split> splits, std::span<const float> leaves);
  // No tree follows; before it, sum() must not be called.
  void finish();

  bool empty() const { return roots_.empty(); }
  std::size_t trees() const { return found_.size(); }
  double sum(std::span<const float> features) const;

 private:
  // A walk goes to the next node, or `right` nodes on. A leaf stays where it is (its feature is
  // below every value), so that several trees are walked in step, without a branch to guess.
  struct Node {
    float value;            // the threshold; of a leaf, what it adds
    std::uint16_t feature;  // of a leaf: kLeaf
    std::uint16_t right;
  };
  static constexpr std::uint16_t kLeaf = kFeatures;
  std::vector<std::pair<int, std::uint32_t>> found_;  // depth and root of each tree
  std::vector<std::uint32_t> roots_;  // a multiple of kLanes: the last ones are empty trees
  std::vector<int> depths_;           // per kLanes trees, the deepest; trees go in order of depth
  std::vector<Node> nodes_;
};

}  // namespace maya::estimate
