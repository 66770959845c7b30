#include "network/curve.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace maya::network {
namespace {

// Sizes of the table between two powers of two, relative to the lower one.
const std::array<double, 5> kParts{1, std::exp2(0.25), std::exp2(0.5), std::exp2(0.75), 2};

}  // namespace

Curve::Curve(const std::function<double(double)>& us) {
  us_.reserve(kPerDoubling * kDoublings + 1);
  double most = 0;
  for (int i = 0; i <= kPerDoubling * kDoublings; ++i) {
    most = std::max(most, us(std::ldexp(kParts[i % kPerDoubling], i / kPerDoubling)));
    us_.push_back(most);
  }
}

double Curve::operator()(double bytes) const {
  int power{};
  const double part = 2 * std::frexp(std::max(1.0, bytes), &power);  // 1 … 2
  --power;
  if (power >= kDoublings) return us_.back() * bytes / std::ldexp(1.0, kDoublings);
  int at = 0;
  while (at < kPerDoubling - 1 && part >= kParts[at + 1]) ++at;
  const auto low = static_cast<std::size_t>(power * kPerDoubling + at);
  const double share = (part - kParts[at]) / (kParts[at + 1] - kParts[at]);
  return us_[low] + share * (us_[low + 1] - us_[low]);
}

}  // namespace maya::network
