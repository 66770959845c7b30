// The time of one collective over its size: tabulated once, so that it grows with size whatever
// the algorithms behind it do.
//
// NCCL chooses by what it believes of the algorithms, not by what they take, and a formula that is
// wrong about one of them would make the time jump where NCCL changes over to it. Two rules keep
// the curve sane: what was chosen takes at most kSlack times the best there is, and no size is
// faster than a smaller one.
#pragma once

#include <functional>
#include <vector>

namespace maya::network {

class Curve {
 public:
  static constexpr double kSlack = 1.15;

  // `us` of a size in bytes.
  explicit Curve(const std::function<double(double)>& us);
  double operator()(double bytes) const;

 private:
  static constexpr int kPerDoubling = 4, kDoublings = 46;
  std::vector<double> us_;
};

}  // namespace maya::network
