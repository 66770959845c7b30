// Concurrent communications of one GPU share its ports.
//
// Each communication is a flow with its rate when it runs alone and its weights on the ports.
// Together they get max-min fair rates (network/max_min.h). Only the ratio to the rate alone is
// used, so a single communication always runs at full speed and takes the time of the network's
// closed form. A collective ends with its slowest member.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "network/max_min.h"
#include "simulate/program.h"

namespace maya::simulate {

class LinkShares {
 public:
  LinkShares(const std::vector<CommunicationTime>& times, const network::Ports& capacity)
      : times_(times), solver_({capacity.begin(), capacity.end()}) {}

  // `times` are indices of communication times, ascending. Returns the rates in the same order, as
  // fractions of 2^16.
  const std::vector<std::uint32_t>& of(const std::vector<std::uint32_t>& times);

 private:
  struct Hash {
    std::size_t operator()(const std::vector<std::uint32_t>& key) const {
      std::uint64_t h = 0x9e3779b97f4a7c15;
      for (std::uint32_t k : key) h = (h ^ k) * 0xff51afd7ed558ccd, h ^= h >> 32;
      return h;
    }
  };
  std::vector<std::uint32_t> solve(const std::vector<std::uint32_t>& times);

  const std::vector<CommunicationTime>& times_;
  network::MaxMin solver_;
  std::unordered_map<std::vector<std::uint32_t>, std::vector<std::uint32_t>, Hash> known_;
};

}  // namespace maya::simulate
