// Durations a program asks for while it runs: events, autotuners, cudnn.benchmark.
//
// Answers come from the same estimator as the prediction's. It is consulted only once a program has
// asked (created a timing event): most training never does, and then launching costs nothing extra.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "maya/estimate.h"

namespace maya::session {

class Timing {
 public:
  double ns(const Op& op);
  double ns(std::uint32_t op);  // by number in the recording, cached

 private:
  const estimate::Estimator* estimator();
  std::mutex mutex_;
  bool tried_ = false;
  std::unique_ptr<estimate::Estimator> estimator_;
  std::vector<float> cache_;
};

Timing& timing();

}  // namespace maya::session
