// The input of the slow simulator: the work of every rank as nodes with explicit predecessors, and
// every host call with what it waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "maya/simulate.h"
#include "simulate/model.h"

namespace maya::testing {

inline constexpr std::int64_t unknown = -1;

struct Node {
  enum class What { nothing, kernel, copy, communication, host_function } what{What::nothing};
  std::uint32_t rank{}, record{}, call{};  // call: host call that issues it
  std::uint32_t device{};
  std::vector<int> before;
  std::int64_t gap{};
  std::int32_t priority{};
  int chain{};
  std::uint32_t share{};
  bool memory_bound{};
  std::uint32_t blocks{};
  std::uint32_t memory{};     // communication: share of the memory bandwidth it takes
  int engine{-1};             // copies
  double alone{};             // communication: bytes per ns
  network::Ports weight{};    // bytes on each port for each of its own
  std::vector<int> partners;  // start together
  bool ends_together{};
  std::int64_t work{};  // left: ns · 2^16
  std::int64_t ready{unknown}, begin{unknown}, local_end{unknown}, done{unknown};
};

struct Call {
  std::uint32_t rank{}, record{};
  int before{-1};  // the thread's previous call
  int resumed_after{-1};
  std::int64_t cpu{}, cost{};
  int room{-1};  // the node that has to end to make room in the launch queue
  std::vector<int> waits;
  std::int64_t issue{unknown}, end{unknown};
};

struct SlowPlan {
  std::vector<Node> nodes;
  std::vector<Call> calls;
};

SlowPlan write_down(const job::Job& job, const simulate::Model& model,
                    const estimate::Estimator& estimator, const network::Network& network);

}  // namespace maya::testing
