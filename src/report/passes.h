// Which work of a step belongs to its backward passes, and which communicators join the ranks that
// share one model (tensor parallelism).
#pragma once

#include <cstdint>
#include <map>

#include "report/usage.h"

namespace maya::report {

// An autograd engine computes gradients in a thread of its own; where a program does it in its own
// thread (compiled autograd), the kernels say so.
class Passes {
 public:
  Passes(const job::Job& job, const job::RankClass& rank_class);
  // Work of record `index` (the record that issued it, for the nodes of a graph).
  bool backward(std::uint32_t index, const Op& op) const;

 private:
  const trace::Recording& recording_;
  std::uint16_t program_{};
};

// Communicators over which a class reduces activations in its forward passes, with the most bytes
// of one call. Gradients are reduced in or behind the backward pass; sharded weights are gathered,
// not reduced.
std::map<std::uint16_t, std::int64_t> forward_reductions(const job::Job& job,
                                                         const job::RankClass& rank_class);

// A stage of a pipeline begins by sending or by receiving; members of a ring or of an exchange of
// all with all do both at once.
bool is_pipeline_stage(const job::Job& job, const job::RankClass& rank_class);

}  // namespace maya::report
