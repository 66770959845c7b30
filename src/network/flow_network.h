// The network as flows over links: what several collectives and messages of a job cost each other.
//
// A collective or a group of messages becomes one flow (flow.h) over the links its algorithm uses,
// never faster than it is alone (the closed form).
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
  double start_ns{};                // not before, counted from the end of those it comes after
  std::vector<std::int32_t> after;  // indices of activities
};

class FlowNetwork : public Network {
 public:
  FlowNetwork(const catalog::Cluster& cluster, const Parameters& parameters,
              const Environment& environment, Measured measured = {});

  // Alone: as the closed form, unless a link of the topology is narrower than it thinks.
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

  // Together. An error for an activity that comes after itself or after one that does not exist.
  Result<std::vector<Interval>> run(std::span<const Activity> activities) const;

 private:
  ClosedForm alone_;
  Topology topology_;
};

}  // namespace maya::network
