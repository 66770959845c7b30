// A small job with its timeline for the tests of this folder: four ranks in two classes (ranks 0-2,
// and rank 3, which uses more memory) and three steps, one of which is warm-up. Each step takes 10
// ms: a GEMM, attention, an unknown kernel, an all-reduce of which half is hidden by the GEMM,
// AdamW.
#pragma once

#include "maya/report.h"

namespace maya::report::sample {

job::Job job();
simulate::Timeline timeline();
catalog::Cluster cluster();

class Estimator : public estimate::Estimator {
 public:
  estimate::Estimate operator()(const Op& op) const override;
};

class Network : public network::Network {
 public:
  network::CollectiveTime collective(const Collective& op,
                                     std::span<const std::int32_t> ranks) const override;
  network::CollectiveTime messages(std::span<const network::Message> group) const override;
};

Prediction prediction();

}  // namespace maya::report::sample
