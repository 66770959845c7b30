// Point-to-point traffic without contention from elsewhere: grouped messages, all-to-all, gather
// and scatter. Every message of a group moves at once, so the group lasts as long as its busiest
// resource: a GPU's link out or in, a GPU's share of the cards, a machine's cards.
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
  int peers{};  // most of one rank
  bool reachable{true};
};

class Exchange {
 public:
  Exchange(const catalog::Cluster& cluster, const Parameters& parameters,
           const Environment& environment);

  ExchangeTime messages(std::span<const Message> group) const;
  // Every rank sends bytes / n to every other.
  ExchangeTime all_to_all(const Shape& shape, double bytes) const;
  // One rank receives (or sends) bytes · (n - 1) / n.
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
