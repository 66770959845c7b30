#include "estimate/forest.h"

#include <algorithm>
#include <array>
#include <limits>

namespace maya::estimate {

bool Forest::add(std::span<const Split> splits, std::span<const float> leaves) {
  const int inner = static_cast<int>(splits.size());
  if (leaves.size() != splits.size() + 1) return false;
  for (int i = 0; i < inner; ++i) {
    const Split& split = splits[static_cast<std::size_t>(i)];
    const int last = 2 * inner;
    if (split.feature >= kFeatures || split.left <= i || split.right <= i || split.left > last ||
        split.right > last)
      return false;
  }
  // The left child right after its parent. Damaged data may join branches again, so the nodes of
  // one tree are counted.
  const std::size_t root = nodes_.size();
  int deepest = 0;
  bool joined = false;
  auto place = [&](auto&& self, int index, int depth) -> void {
    deepest = std::max(deepest, depth);
    const std::size_t at = nodes_.size();
    if (joined || at - root > 2 * splits.size()) {
      joined = true;
      return;
    }
    if (index >= inner) {
      nodes_.push_back({leaves[static_cast<std::size_t>(index - inner)], kLeaf, 0});
      return;
    }
    const Split& split = splits[static_cast<std::size_t>(index)];
    nodes_.push_back({split.threshold, split.feature, 0});
    self(self, split.left, depth + 1);
    nodes_[at].right = static_cast<std::uint16_t>(nodes_.size() - at);
    self(self, split.right, depth + 1);
  };
  place(place, 0, 0);
  if (joined) return false;
  found_.emplace_back(deepest, static_cast<std::uint32_t>(root));
  return true;
}

void Forest::finish() {
  auto found = found_;
  if (found.size() % kLanes != 0) nodes_.push_back({0, kLeaf, 0});
  while (found.size() % kLanes != 0)
    found.emplace_back(0, static_cast<std::uint32_t>(nodes_.size() - 1));
  std::sort(found.begin(), found.end());
  for (std::size_t i = 0; i < found.size(); ++i) {
    roots_.push_back(found[i].second);
    if (i % kLanes == kLanes - 1) depths_.push_back(found[i].first);
  }
}

double Forest::sum(std::span<const float> features) const {
  std::array<float, kFeatures + 1> f;
  std::copy(features.begin(), features.end(), f.begin());
  f[kLeaf] = -std::numeric_limits<float>::infinity();
  double sum = 0;
  for (std::size_t group = 0; group < depths_.size(); ++group) {
    std::array<const Node*, kLanes> at;
    for (std::size_t i = 0; i < kLanes; ++i) at[i] = nodes_.data() + roots_[group * kLanes + i];
    for (int step = depths_[group]; step > 0; --step) {
// All lanes in registers.
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kLanes; ++i) {
        const Node& node = *at[i];
        const std::uint32_t above = 0U - static_cast<std::uint32_t>(f[node.feature] > node.value);
        at[i] +=
            (node.right & above) | (static_cast<std::uint32_t>(node.feature != kLeaf) & ~above);
      }
    }
    for (const Node* node : at) sum += node->value;
  }
  return sum;
}

}  // namespace maya::estimate
