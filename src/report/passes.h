// Determines which work of a step belongs to backward passes, and which communicators connect ranks
// that share one model (tensor parallelism).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "report/usage.h"

namespace maya::report {

// An autograd engine computes gradients in a thread of its own. If the program does it in its main
// thread (compiled autograd), backward work is recognised by its kernels. Threads that run forward
// passes beside each other (DataParallel's replicas) are those with forward work and no gradients.
class Passes {
 public:
  Passes(const job::Job& job, const job::RankClass& rank_class);
  // Whether `op` belongs to a backward pass. `index` is the record that issued it; for a node of a
  // graph, the graph launch.
  bool backward(std::uint32_t index, const Op& op) const;

 private:
  const trace::Recording& recording_;
  std::uint16_t program_{};
  std::set<std::uint16_t> replicas_;
};

// The slots of the communicators over which a class reduces activations in its forward passes, with
// the largest size of a call. Gradients are reduced in or after the backward pass, and sharded
// weights are gathered and not reduced.
std::map<std::uint16_t, std::int64_t> forward_reductions(const job::Job& job,
                                                         const job::RankClass& rank_class);

// For each class whether its ranks are pipeline stages. A stage begins by sending or by receiving;
// members of a ring or of an all-to-all exchange do both at once. So do some stages that hold
// several chunks of the model, but not all of one pipeline: the last begins by receiving.
std::vector<bool> stages_of_pipelines(const job::Job& job);

}  // namespace maya::report
