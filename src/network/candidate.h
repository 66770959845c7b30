// One way NCCL could run a collective, with two views of it: the tuner's, by which NCCL chooses,
// and ours, by which we say how long it takes.
//
//   tuner:  t(S) = latency + S / bandwidth                                  [µs, S in bytes]
//   time:   t(S) = latency + (S + fill · S / (S + half)) / bandwidth
//
// `fill` is what the pipeline of chunks costs until it is full, in bytes' worth of time.
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
  double thread_threshold{64};  // bytes per thread below which NCCL takes fewer channels

  double time_us(double bytes) const {
    return latency_us + (bytes + fill_bytes * bytes / (bytes + half_bytes)) / (gbps * 1e3);
  }
};

// Everything an algorithm looks at.
struct Context {
  const catalog::Cluster& cluster;
  const Parameters& parameters;
  const Environment& environment;
  Shape shape;
  CollectiveKind kind;

  int by_nodes() const { return shape.islands == 1 ? 0 : shape.islands == 2 ? 1 : 2; }
  Hardware wire() const { return shape.wire == Wire::nvlink ? kNvlink : kPci; }
  double steps() const;          // of a ring
  double network_steps() const;  // those of them that cross between islands
  // GB/s one way: between GPUs of an island per GPU, and into the network per island. `believed`
  // as NCCL's topology search has it, else as measured.
  double inside_gbps(bool believed) const;
  double outside_gbps(bool believed) const;
  // LL128 needs 128-byte stores to arrive whole: NVLink, Volta or later, and a network that keeps
  // them so; some network plugins (EFA) take only Simple.
  bool allows(Protocol protocol) const;
  // One step between islands: what NCCL counts, as measured, and what this card adds.
  double network_hop_us(double believed) const {
    return parameters.time.latency[kNet] * believed + cluster.nic.latency_us;
  }
  // NCCL plans whole channels of a speed from its list: number and speed of each.
  int planned_channels(double total_gbps, double* speed) const;
};

// Each appends its candidates if the algorithm exists for the context.
void add_ring(const Context& context, std::vector<Candidate>& out);
void add_tree(const Context& context, std::vector<Candidate>& out);
void add_nvls(const Context& context, std::vector<Candidate>& out);
void add_collnet(const Context& context, std::vector<Candidate>& out);
void add_pat(const Context& context, std::vector<Candidate>& out);

// All that the environment allows; NVLS apart, which also depends on type and operation.
std::vector<Candidate> candidates(const Context& context);

}  // namespace maya::network
