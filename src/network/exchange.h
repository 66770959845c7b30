// Point-to-point traffic without contention from other traffic: grouped messages, all-to-all,
// gather and scatter. All messages of a group move at the same time, so the group takes as long as
// its busiest resource: the outgoing or incoming link of a GPU, the share of a GPU of the cards, or
// the cards of a machine.
#pragma once

#include <span>

#include "maya/catalog.h"
#include "maya/network.h"
#include "network/environment.h"
#include "network/parameters.h"
#include "network/shape.h"

namespace maya::network {

struct ExchangeTime {
  double latency_us{}, transfer_us{};
  int peers{};  // the largest number of peers of a rank
  bool reachable{true};
};

class Exchange {
 public:
  Exchange(const catalog::Cluster& cluster, const Parameters& parameters,
           const Environment& environment);

  ExchangeTime messages(std::span<const Message> group) const;
  // Every rank sends bytes / n to every other.
  ExchangeTime all_to_all(const Shape& shape, double bytes) const;
  // Gather and scatter: one rank receives or sends bytes · (n - 1) / n.
  ExchangeTime rooted(const Shape& shape, double bytes) const;

  double link_gbps(Wire wire) const;  // GPU to GPU inside an island
  double card_gbps() const;           // one GPU into the network
  double node_gbps() const;           // one machine into the network

 private:
  double network_us() const;
  double with_fill(double bytes, double gbps) const;

  const catalog::Cluster& cluster_;
  const Time& time_;
  const Environment& environment_;
};

}  // namespace maya::network
