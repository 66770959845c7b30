#include "estimate/trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace maya::estimate {

Result<Trees> Trees::parse(std::span<const double> numbers, std::size_t features,
                           std::span<const double> range) {
  std::size_t at = 0;
  bool short_of = false;
  auto next = [&]() -> double {
    if (at >= numbers.size()) return short_of = true, 0.0;
    return numbers[at++];
  };
  const Error broken{"a correction (trees) in the model file is damaged; run tools/fit again"};
  if (features > kFeatures || range.size() % 2 != 0 || range.size() > 2 * features) return broken;
  Trees out;
  out.range_.assign(range.begin(), range.end());
  out.bound_ = next();
  const double count = next();
  if (short_of || !(out.bound_ >= 0 && out.bound_ <= 1) || !(count >= 0 && count <= 2000))
    return broken;
  struct Split {
    double feature, threshold;
    int left, right;
  };
  std::vector<Split> splits;
  std::vector<double> leaves;
  std::vector<std::pair<int, std::uint32_t>> found;  // depth and root of each tree
  for (int t = 0; t < static_cast<int>(count); ++t) {
    const double number = next();
    if (short_of || !(number >= 0 && number <= 1000)) return broken;
    const int inner = static_cast<int>(number);
    auto child = [&](double c) -> int {
      int index = c >= 0 ? static_cast<int>(c) : inner + static_cast<int>(-1 - c);
      return index >= 0 && index < 2 * inner + 1 ? index : -1;
    };
    splits.clear(), leaves.clear();
    for (int i = 0; i < inner; ++i) {
      const double feature = next(), threshold = next(), left = next(), right = next();
      // Children come after their parent: a walk always ends.
      const int l = child(left), r = child(right);
      if (short_of || feature < 0 || feature >= static_cast<double>(features) || l <= i || r <= i)
        return broken;
      splits.push_back({feature, threshold, l, r});
    }
    for (int i = 0; i < inner + 1; ++i) leaves.push_back(next());
    // The left child right after its parent. A damaged file may join branches again, so the nodes
    // of one tree are counted.
    const std::size_t root = out.nodes_.size();
    int deepest = 0;
    bool joined = false;
    auto place = [&](auto&& self, int index, int depth) -> void {
      deepest = std::max(deepest, depth);
      const std::size_t at = out.nodes_.size();
      if (joined || at - root > 2 * splits.size()) {
        joined = true;
        return;
      }
      if (index >= inner) {
        out.nodes_.push_back(
            {static_cast<float>(leaves[static_cast<std::size_t>(index - inner)]), kLeaf, 0});
        return;
      }
      const Split& split = splits[static_cast<std::size_t>(index)];
      out.nodes_.push_back(
          {static_cast<float>(split.threshold), static_cast<std::uint16_t>(split.feature), 0});
      self(self, split.left, depth + 1);
      out.nodes_[at].right = static_cast<std::uint16_t>(out.nodes_.size() - at);
      self(self, split.right, depth + 1);
    };
    place(place, 0, 0);
    if (joined) return broken;
    found.emplace_back(deepest, static_cast<std::uint32_t>(root));
  }
  if (short_of || at != numbers.size()) return broken;
  if (found.size() % kLanes != 0) out.nodes_.push_back({0, kLeaf, 0});
  while (found.size() % kLanes != 0)
    found.emplace_back(0, static_cast<std::uint32_t>(out.nodes_.size() - 1));
  std::sort(found.begin(), found.end());
  for (std::size_t i = 0; i < found.size(); ++i) {
    out.roots_.push_back(found[i].second);
    if (i % kLanes == kLanes - 1) out.depths_.push_back(found[i].first);
  }
  return out;
}

double Trees::factor(std::span<const double> features) const {
  std::array<float, kFeatures + 1> f;
  for (std::size_t i = 0; i < features.size(); ++i) f[i] = static_cast<float>(features[i]);
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
  double outside = 0;
  for (std::size_t i = 0; i < range_.size() / 2; ++i)
    outside +=
        std::max(0.0, range_[2 * i] - features[i]) + std::max(0.0, features[i] - range_[2 * i + 1]);
  return std::exp(std::clamp(sum, -bound_, bound_) * std::exp2(-std::max(0.0, outside - 1)));
}

}  // namespace maya::estimate
