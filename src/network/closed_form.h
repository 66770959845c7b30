// The network as a formula: every collective by itself, with its links to itself.
//
// The first collective of a group of ranks finds the group's shape and the candidates NCCL would
// weigh; later ones only weigh them, which takes well under two microseconds.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "maya/network.h"
#include "network/candidate.h"
#include "network/exchange.h"
#include "network/port_loads.h"

namespace maya::network {

class ClosedForm : public Network {
 public:
  ClosedForm(const catalog::Cluster& cluster, const Parameters& parameters,
             const Environment& environment);

  CollectiveTime collective(const Collective& op,
                            std::span<const std::int32_t> ranks) const override;
  CollectiveTime messages(std::span<const Message> group) const override;
  Ports port_capacity() const override { return ports_.capacity(); }
  Load load(const Collective& op, std::span<const std::int32_t> ranks,
            std::int32_t at) const override {
    return ports_.collective(op, collective(op, ranks).algorithm, ranks, at);
  }
  Load load(std::span<const Message> group, std::int32_t at) const override {
    return ports_.messages(group, at);
  }

  const catalog::Cluster& cluster() const { return cluster_; }
  const Parameters& parameters() const { return parameters_; }
  const Environment& environment() const { return environment_; }
  const Exchange& exchange() const { return exchange_; }
  Shape shape(std::span<const std::int32_t> ranks) const;
  const std::vector<Candidate>& candidates_of(const Shape& shape, CollectiveKind kind) const;

 private:
  struct Group {  // ranks first, first + stride, …
    int first, stride, count;
    auto operator<=>(const Group&) const = default;
  };
  CollectiveTime finished(double latency_us, double transfer_us, bool known) const;

  catalog::Cluster cluster_;
  Parameters parameters_;
  Environment environment_;
  Exchange exchange_;
  PortLoads ports_;
  bool fitted_{};
  mutable std::shared_mutex mutex_;
  mutable std::map<Group, Shape> regular_;
  mutable std::map<std::vector<std::int32_t>, Shape> irregular_;
  mutable std::map<std::pair<Shape, CollectiveKind>, std::unique_ptr<std::vector<Candidate>>>
      tables_;
};

}  // namespace maya::network
