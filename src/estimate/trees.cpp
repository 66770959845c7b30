#include "estimate/trees.h"

#include <algorithm>
#include <array>
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
  if (features > Forest::kFeatures || range.size() % 2 != 0 || range.size() > 2 * features)
    return broken;
  Trees out;
  out.range_.assign(range.begin(), range.end());
  out.bound_ = next();
  const double count = next();
  if (short_of || !(out.bound_ >= 0 && out.bound_ <= 1) || !(count >= 0 && count <= 2000))
    return broken;
  std::vector<Forest::Split> splits;
  std::vector<float> leaves;
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
      if (short_of || feature < 0 || feature >= static_cast<double>(features)) return broken;
      splits.push_back({static_cast<std::uint16_t>(feature), static_cast<float>(threshold),
                        child(left), child(right)});
    }
    for (int i = 0; i < inner + 1; ++i) leaves.push_back(static_cast<float>(next()));
    if (short_of || !out.forest_.add(splits, leaves)) return broken;
  }
  if (short_of || at != numbers.size()) return broken;
  out.forest_.finish();
  return out;
}

double Trees::factor(std::span<const double> features) const {
  std::array<float, Forest::kFeatures> f;
  for (std::size_t i = 0; i < features.size(); ++i) f[i] = static_cast<float>(features[i]);
  const double sum = forest_.sum(std::span(f).first(features.size()));
  double outside = 0;
  for (std::size_t i = 0; i < range_.size() / 2; ++i)
    outside +=
        std::max(0.0, range_[2 * i] - features[i]) + std::max(0.0, features[i] - range_[2 * i + 1]);
  return std::exp(std::clamp(sum, -bound_, bound_) * std::exp2(-std::max(0.0, outside - 1)));
}

}  // namespace maya::estimate
