// Estimator and network model with the factors of the user's what-ifs applied.
#pragma once

#include "maya/estimate.h"
#include "maya/network.h"
#include "predict/settings.h"

namespace maya::predict {

class ScaledEstimator : public estimate::Estimator {
 public:
  ScaledEstimator(const estimate::Estimator& base, const Settings& settings)
      : base_(base), settings_(settings) {}
  estimate::Estimate operator()(const Op& op) const override {
    estimate::Estimate estimate = base_(op);
    const double factor = settings_.factor(op.work);
    estimate.ns *= factor, estimate.low_ns *= factor, estimate.high_ns *= factor;
    return estimate;
  }

 private:
  const estimate::Estimator& base_;
  const Settings& settings_;
};

class ScaledNetwork : public network::Network {
 public:
  ScaledNetwork(const network::Network& base, const Settings& settings)
      : base_(base), settings_(settings) {}
  network::CollectiveTime collective(const Collective& op,
                                     std::span<const std::int32_t> ranks) const override {
    return scaled(base_.collective(op, ranks), settings_.factor(Work(op)));
  }
  network::CollectiveTime messages(std::span<const network::Message> group) const override {
    return scaled(base_.messages(group), settings_.factor(Work(PointToPoint{})));
  }

  // A communication that is scaled to half its time also has half its bytes, so that it does not
  // need more bandwidth.
  network::Ports port_capacity() const override { return base_.port_capacity(); }
  network::Load load(const Collective& op, std::span<const std::int32_t> ranks,
                     std::int32_t at) const override {
    return scaled(base_.load(op, ranks, at), settings_.factor(Work(op)));
  }
  network::Load load(std::span<const network::Message> group, std::int32_t at) const override {
    return scaled(base_.load(group, at), settings_.factor(Work(PointToPoint{})));
  }

 private:
  network::Load scaled(network::Load load, double factor) const {
    load.bytes *= factor * settings_.communication;
    return load;
  }
  network::CollectiveTime scaled(network::CollectiveTime time, double factor) const {
    factor *= settings_.communication;
    time.ns *= factor, time.low_ns *= factor, time.high_ns *= factor;
    return time;
  }
  const network::Network& base_;
  const Settings& settings_;
};

}  // namespace maya::predict
