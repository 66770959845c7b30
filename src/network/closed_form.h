// The network model as a formula: every collective runs alone, with all links to itself.
//
// The first collective of a group of ranks determines the shape of the group and the candidates
// that NCCL would consider, and tabulates the time by size. Later ones only choose a candidate and
// look the time up, which takes less than two microseconds. Within one machine the table is
// corrected by published measurements, if there are any.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <tuple>
#include <vector>

#include "maya/network.h"
#include "network/candidate.h"
#include "network/curve.h"
#include "network/exchange.h"
#include "network/measured.h"
#include "network/port_loads.h"

namespace maya::network {

class ClosedForm : public Network {
 public:
  ClosedForm(const catalog::Cluster& cluster, const Parameters& parameters,
             const Environment& environment, Measured measured = {});

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
  // The time of the formulas, limited to kSlack times that of the best algorithm.
  double formula_us(const Shape& shape, CollectiveKind kind, bool in_switch, double bytes) const;
  // Measured time divided by the formula, interpolated between the measured numbers of ranks.
  double correction(const Shape& shape, CollectiveKind kind, bool in_switch, double bytes) const;
  double all_to_all_correction(std::span<const Message> group, double bytes) const;
  const Curve& curve(const Shape& shape, CollectiveKind kind, bool in_switch) const;

  catalog::Cluster cluster_;
  Parameters parameters_;
  Environment environment_;
  Measured measured_;
  bool usual_{};  // no environment variable changes NCCL's choice
  Exchange exchange_;
  PortLoads ports_;
  bool fitted_{};
  mutable std::shared_mutex mutex_;
  mutable std::map<Group, Shape> regular_;
  mutable std::map<std::vector<std::int32_t>, Shape> irregular_;
  mutable std::map<std::pair<Shape, CollectiveKind>, std::unique_ptr<std::vector<Candidate>>>
      tables_;
  mutable std::map<std::tuple<Shape, CollectiveKind, bool>, std::unique_ptr<Curve>> curves_;
};

}  // namespace maya::network
