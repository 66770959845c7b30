// A machine for tests on which the duration of an op is its size, so that expected times can be
// computed by hand. Calls take no time, and there are no gaps or slowdowns unless a test sets them.
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
    bool far =
        std::any_of(ranks.begin(), ranks.end(), [&](std::int32_t r) { return apart(r, ranks[0]); });
    return time(static_cast<double>(op.bytes) * (far ? 2 : 1));
  }
  network::CollectiveTime messages(std::span<const network::Message> group) const override {
    double ns = 0;
    for (const network::Message& m : group)
      ns = std::max(ns, static_cast<double>(m.bytes) * (apart(m.from, m.to) ? 2 : 1));
    return time(ns);
  }

  // One byte per ns inside a node and half of that between nodes: a communication that runs alone
  // saturates its ports.
  network::Ports port_capacity() const override { return {1, 1, 0.5, 0.5, 0, 0}; }
  network::Load load(const Collective& op, std::span<const std::int32_t> ranks,
                     std::int32_t) const override {
    network::Load load{static_cast<double>(op.bytes), {}};
    bool far =
        std::any_of(ranks.begin(), ranks.end(), [&](std::int32_t r) { return apart(r, ranks[0]); });
    for (int port : {0, 1}) load.weight[static_cast<std::size_t>(far ? 2 + port : port)] = 1;
    if (far) load.weight[network::link_out] = 0.25;
    return load;
  }
  network::Load load(std::span<const network::Message> group, std::int32_t at) const override {
    network::Load load;
    for (const network::Message& m : group) {
      load.bytes += static_cast<double>(m.bytes);
      std::size_t port = apart(m.from, m.to) ? 2 : 0;
      if (m.from == at) load.weight[port] += static_cast<double>(m.bytes);
      if (m.to == at) load.weight[port + 1] += static_cast<double>(m.bytes);
    }
    if (load.bytes > 0)
      for (double& w : load.weight) w /= load.bytes;
    return load;
  }

 private:
  bool apart(std::int32_t a, std::int32_t b) const {
    return a / gpus_per_node_ != b / gpus_per_node_;
  }
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
  c.gpu.memory_gbps = 0;  // transfers take no memory bandwidth
  c.extra = {
      {"overlap.communication_slowdown", 0}, {"overlap.share_links", 0}, {"host.callback_us", 0.1}};
  return c;
}

}  // namespace maya::testing
