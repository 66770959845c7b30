// What an op takes within a job, as opposed to by itself: the one place where the two differ.
// Simulator and report are given this estimator and ask nobody else, so that what is said of single
// ops adds up to the step.
//
// A chip whose tensor cores run near their peak for minutes draws more than its board allows, and
// the clock falls. How much it draws depends on the data: products of random numbers more than
// products of zeros. Tables of kernels were taken with weights that were never set, on a GPU that
// did nothing else. What such an estimate promises is therefore held to a rate that the board
// sustains within jobs: its watts over the energy of a FLOP. What runs below that rate takes what
// it takes alone. Models of older measurements are at the level of jobs already, except where jobs
// of minutes were seen to be slower.
//
// Tables of decoding attention were taken with the same keys again and again; those that fit into
// the L2 were read from there (an L40S reads 81 MB at twice its memory's bandwidth). In an engine
// all weights pass through the cache between two uses of a context, so keys come from memory.
//
// Those tables are also times from one start to the next: of the same kernel in a graph, over and
// over. The gap between two nodes is in them, and the simulator adds it in front of every kernel.
// It is taken off here, or a decode step of 400 such kernels would be 0.4 ms too long.
#pragma once

#include <map>

#include "maya/catalog.h"
#include "maya/estimate.h"

namespace maya::cost {

class JobEstimator final : public estimate::Estimator {
 public:
  // From Cluster::extra: power.products, what 16-bit work (and narrower) near its peak reaches
  // within a job of what it does alone, by the older models; power.job_pj, the energy (picojoules)
  // of a 16-bit FLOP of real data, all that the board draws included, and power.job_yield, how far
  // a kernel that promises more falls back to that rate (1: all the way, 0: not at all).
  JobEstimator(const estimate::Estimator& alone, const catalog::Cluster& cluster);
  estimate::Estimate operator()(const Op& op) const override;

  // Time within a job over time alone.
  double longer(const Work& work, const estimate::Estimate& alone) const;

 private:
  const estimate::Estimator& alone_;
  // The arithmetic of this GPU: a recording for one without units for its operands says f32.
  DType arithmetic(const Work& work) const;
  double older(DType type, double tflops) const;
  double cool(DType type, double tflops) const;
  double keys_from_memory_ns(const Work& work) const;

  double products_{1};
  double limit_tflops_{};  // of 16-bit work within a job; 0: not known
  double yield_{1};
  double memory_gbps_{};
  double gap_ns_{};  // between two nodes of a graph
  std::map<DType, double> peak_tflops_;
};

}  // namespace maya::cost
