// One way in which NCCL could run a collective. It has two models: that of NCCL's tuner, which
// decides the choice, and ours, which predicts the time.
//
//   tuner:  t(S) = latency + S / bandwidth                                  [µs, S in bytes]
//   time:   t(S) = latency + (S + fill · S / (S + half)) / bandwidth
//
// `fill` is the cost of filling the pipeline of chunks, expressed in bytes.
#pragma once

#include <vector>

#include "maya/catalog.h"
#include "maya/op.h"
#include "network/environment.h"
#include "network/parameters.h"
#include "network/shape.h"

namespace maya::network {

struct Candidate {
  Algorithm algorithm{kRing};
  Protocol protocol{kSimple};
  double tuner_latency_us{}, tuner_gbps{};
  double latency_us{}, gbps{}, fill_bytes{}, half_bytes{1};
  int channels{1};
  double thread_threshold{64};  // bytes per thread below which NCCL uses fewer channels

  double time_us(double bytes) const {
    return latency_us + (bytes + fill_bytes * bytes / (bytes + half_bytes)) / (gbps * 1e3);
  }
};

// Everything that an algorithm depends on.
struct Context {
  const catalog::Cluster& cluster;
  const Parameters& parameters;
  const Environment& environment;
  Shape shape;
  CollectiveKind kind;

  int by_nodes() const { return shape.islands == 1 ? 0 : shape.islands == 2 ? 1 : 2; }
  Hardware wire() const { return shape.wire == Wire::nvlink ? kNvlink : kPci; }
  double steps() const;          // of a ring
  double network_steps() const;  // the steps of a ring that cross between islands
  // GB/s in one direction: between the GPUs of an island, per GPU; and into the network, per
  // island. With `believed` as NCCL's topology search assumes, else as measured.
  double inside_gbps(bool believed) const;
  double outside_gbps(bool believed) const;
  // LL128 requires that 128-byte stores are not split: NVLink, Volta or later, and a network that
  // guarantees it. Some network plugins (EFA) support only Simple.
  bool allows(Protocol protocol) const;
  // The latency of one step between islands: NCCL's assumption scaled by the measurements, plus the
  // latency of this card.
  double network_hop_us(double believed) const {
    return parameters.time.latency[kNet] * believed + cluster.nic.latency_us;
  }
  // NCCL plans an integer number of channels with a speed from its list. Returns the number.
  int planned_channels(double total_gbps, double* speed) const;
};

// Each appends its candidates if the algorithm exists for the context.
void add_ring(const Context& context, std::vector<Candidate>& out);
void add_tree(const Context& context, std::vector<Candidate>& out);
void add_nvls(const Context& context, std::vector<Candidate>& out);
void add_collnet(const Context& context, std::vector<Candidate>& out);
void add_pat(const Context& context, std::vector<Candidate>& out);

// All candidates that the environment allows. NVLS also depends on type and operation: see
// choose().
std::vector<Candidate> candidates(const Context& context);

}  // namespace maya::network
