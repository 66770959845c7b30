// A machine for tests on which an op takes as long as its size says, so that expected times can be
// added up by hand: no call costs, no gaps, no slow-downs unless a test asks for them.
#pragma once

#include <algorithm>

#include "maya/estimate.h"
#include "maya/network.h"
#include "maya/simulate.h"

namespace maya::testing {

class SizeEstimator final : public estimate::Estimator {
 public:
  estimate::Estimate operator()(const Op& op) const override {
    double ns = 1;
    if (const auto* k = std::get_if<OtherKernel>(&op.work))
      ns = static_cast<double>(k->bytes_touched);
    if (const auto* k = std::get_if<OptimizerStep>(&op.work)) ns = static_cast<double>(k->elements);
    if (const auto* k = std::get_if<Copy>(&op.work)) ns = static_cast<double>(k->bytes);
    if (const auto* k = std::get_if<Fill>(&op.work)) ns = static_cast<double>(k->bytes);
    return {ns, 0.9 * ns, 1.2 * ns, estimate::Origin::first_principles};
  }
};

class SizeNetwork final : public network::Network {
 public:
  explicit SizeNetwork(int gpus_per_node = 8, int channels = 0)
      : gpus_per_node_(gpus_per_node), channels_(channels) {}
  // Between nodes everything takes twice as long.
  network::CollectiveTime collective(const Collective& op,
                                     std::span<const std::int32_t> ranks) const override {
    bool apart = std::any_of(ranks.begin(), ranks.end(), [&](std::int32_t r) {
      return r / gpus_per_node_ != ranks[0] / gpus_per_node_;
    });
    return time(static_cast<double>(op.bytes) * (apart ? 2 : 1));
  }
  network::CollectiveTime messages(std::span<const network::Message> group) const override {
    double ns = 0;
    for (const network::Message& m : group)
      ns = std::max(ns, static_cast<double>(m.bytes) *
                            (m.from / gpus_per_node_ != m.to / gpus_per_node_ ? 2 : 1));
    return time(ns);
  }

 private:
  network::CollectiveTime time(double ns) const {
    network::CollectiveTime t;
    t.ns = ns, t.low_ns = 0.8 * ns, t.high_ns = 1.3 * ns, t.channels = channels_;
    return t;
  }
  int gpus_per_node_, channels_;
};

inline catalog::Cluster plain_cluster(int gpus = 1024) {
  catalog::Cluster c;
  c.name = "plain";
  c.gpus_per_node = gpus;
  c.gpu.sms = 100;
  c.gpu.max_threads_per_sm = 1024;
  c.gpu.max_blocks_per_sm = 1;
  c.extra = {{"overlap.bandwidth_slowdown", 0},
             {"overlap.communication_slowdown", 0},
             {"overlap.share_links", 0},
             {"host.callback_us", 0.1}};
  return c;
}

}  // namespace maya::testing
