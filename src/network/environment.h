// The NCCL_* variables of the recorded run that change what NCCL does.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "maya/op.h"
#include "network/parameters.h"

namespace maya::network {

struct Environment {
  // Allowed algorithms and protocols, by collective (NCCL's five functions in the order of
  // CollectiveKind).
  std::array<std::array<bool, kAlgorithms>, 5> algorithm{};
  std::array<std::array<bool, kProtocols>, 5> protocol{};
  bool ll128_forced{};  // named in NCCL_PROTO, and therefore allowed where NCCL would not use it
  int least_channels{1}, most_channels{64};
  bool nvls{true}, collnet{false}, pat{true}, p2p{true}, gpu_direct{true};
  double net_overhead_us{-1};
  int version{22700};  // NCCL_VERSION as major·10000 + minor·100 + patch
  // One line for each variable that is unknown or has a value that NCCL would reject.
  std::vector<std::string> notes;
};

Environment environment_of(const std::map<std::string, std::string>& variables);

}  // namespace maya::network
