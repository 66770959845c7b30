#include "estimate/trees.h"

#include <algorithm>
#include <cmath>

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
  if (range.size() % 2 != 0 || range.size() > 2 * features) return broken;
  Trees out;
  out.range_.assign(range.begin(), range.end());
  out.bound_ = next();
  const double count = next();
  if (short_of || !(out.bound_ >= 0 && out.bound_ <= 1) || !(count >= 0 && count <= 2000))
    return broken;
  for (int t = 0; t < static_cast<int>(count); ++t) {
    const double splits = next();
    if (short_of || !(splits >= 0 && splits <= 1000)) return broken;
    const int inner = static_cast<int>(splits);
    out.roots_.push_back(static_cast<std::uint32_t>(out.nodes_.size()));
    auto child = [&](double c) -> int {
      int index = c >= 0 ? static_cast<int>(c) : inner + static_cast<int>(-1 - c);
      return index >= 0 && index < 2 * inner + 1 ? index : -1;
    };
    for (int i = 0; i < inner; ++i) {
      const double feature = next(), threshold = next(), left = next(), right = next();
      // Children come after their parent: a walk always ends.
      const int l = child(left), r = child(right);
      if (short_of || feature < 0 || feature >= static_cast<double>(features) || l <= i || r <= i)
        return broken;
      out.nodes_.push_back({static_cast<float>(threshold), static_cast<std::int16_t>(feature),
                            static_cast<std::uint16_t>(l), static_cast<std::uint16_t>(r)});
    }
    for (int i = 0; i < inner + 1; ++i)
      out.nodes_.push_back({static_cast<float>(next()), -1, 0, 0});
  }
  if (short_of || at != numbers.size()) return broken;
  return out;
}

double Trees::factor(std::span<const double> features) const {
  double sum = 0;
  for (std::uint32_t root : roots_) {
    const Node* tree = nodes_.data() + root;
    const Node* node = tree;
    while (node->feature >= 0)
      node = tree + (static_cast<float>(features[static_cast<std::size_t>(node->feature)]) <=
                             node->threshold
                         ? node->left
                         : node->right);
    sum += node->threshold;
  }
  double outside = 0;
  for (std::size_t i = 0; i < range_.size() / 2; ++i)
    outside +=
        std::max(0.0, range_[2 * i] - features[i]) + std::max(0.0, features[i] - range_[2 * i + 1]);
  return std::exp(std::clamp(sum, -bound_, bound_) * std::exp2(-std::max(0.0, outside - 1)));
}

}  // namespace maya::estimate
