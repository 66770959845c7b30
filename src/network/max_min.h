// Max-min fair sharing of links.
//
// Flow f runs at rate r_f, takes w_fl · r_f of every link l it uses and is never faster than cap_f:
//
//     Σ_f w_fl · r_f ≤ C_l   for every link l,      r_f ≤ cap_f,
//
// and no rate can be increased without decreasing one that is not larger. Progressive filling
// computes it: all rates grow together, and a flow stops when it reaches its cap or when a link
// that it uses is full, at the rate
//
//     λ_l = (C_l - Σ_{f stopped} w_fl · r_f) / Σ_{f growing} w_fl
//
// λ_l never decreases while flows stop at lower rates, so a heap of links with lazy updates is
// enough. The cost is O(uses · log links).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace maya::network {

struct Use {
  std::int32_t link{};
  double weight{1};
};

class MaxMin {
 public:
  // The capacities are fixed. Each call of solve() visits only the links that its flows use.
  explicit MaxMin(std::vector<double> capacities);

  // A flow. `rate` is the result.
  struct Flow {
    std::span<const Use> uses;
    double cap{};
    double rate{};
  };
  void solve(std::span<Flow> flows);

  std::size_t links() const { return capacity_.size(); }
  double capacity(std::size_t link) const { return capacity_[link]; }

 private:
  std::vector<double> capacity_;
  // Temporary data by link, valid for the links of the current solve().
  std::vector<double> left_, weight_;
  std::vector<std::int32_t> slot_;
};

}  // namespace maya::network
