// The network model as flows over links: how concurrent collectives and messages of a job slow each
// other down.
//
// A collective or a group of messages is one flow (flow.h) over the links that its algorithm uses.
// It is never faster than it is alone (closed_form.h).
#pragma once

#include <memory>

#include "network/closed_form.h"
#include "network/flow.h"
#include "network/topology.h"

namespace maya::network {

struct Activity {
  Collective op;  // used when `messages` is empty
  std::vector<std::int32_t> ranks;
  std::vector<Message> messages;    // one group of point-to-point calls
  double start_ns{};                // earliest start, relative to the end of its predecessors
  std::vector<std::int32_t> after;  // indices of activities
};

class FlowNetwork : public Network {
 public:
  FlowNetwork(const catalog::Cluster& cluster, const Parameters& parameters,
              const Environment& environment, Measured measured = {});

  // The time alone: that of the closed form, unless a link of the topology is slower than assumed
  // there.
  CollectiveTime collective(const Collective& op,
                            std::span<const std::int32_t> ranks) const override;
  CollectiveTime messages(std::span<const Message> group) const override;
  Ports port_capacity() const override { return alone_.port_capacity(); }
  Load load(const Collective& op, std::span<const std::int32_t> ranks,
            std::int32_t at) const override {
    return alone_.load(op, ranks, at);
  }
  Load load(std::span<const Message> group, std::int32_t at) const override {
    return alone_.load(group, at);
  }

  // Runs activities together. Returns an error if a predecessor does not exist or if the
  // predecessors form a cycle.
  Result<std::vector<Interval>> run(std::span<const Activity> activities) const;

 private:
  ClosedForm alone_;
  Topology topology_;
};

}  // namespace maya::network
