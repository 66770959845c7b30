// The few numbers of a GPU the models look at, in units that multiply without conversion:
// nanoseconds, bytes per nanosecond (= GB/s), FLOPs per nanosecond (= GFLOP/s).
#pragma once

#include <array>
#include <string>

#include "maya/catalog.h"
#include "maya/dtype.h"

namespace maya::estimate {

struct Chip {
  std::string name, architecture;  // architecture with its capability: "ampere-8.0"
  std::string family;              // "ampere"
  double sms{1};
  double clock{1};  // GHz, boost
  // Clock under load against boost, where the sheet says: above 1 on boards that clock past it.
  double sustained{1};
  double watts{0};                         // of the board; 0: not known
  double tensor_limit{0}, plain_limit{0};  // FLOPs per ns within them, 16-bit and f32; 0: none
  double narrow{1};
  double tensor_yield{0}, plain_yield{0};  // see power.h
  double dram{1};                          // bytes per ns
  double l2{1};                            // bytes per ns
  double l2_bytes{1};
  double cluster{1};  // SMs that fetch an operand they share from L2 once, in tensor-core products
  double pcie{1};     // bytes per ns
  double nvlink{0};
  double shared_per_sm{65536};
  double threads_per_sm{2048};
  std::array<double, 32> peak{};  // FLOPs per ns by DType, dense

  double rate(DType type) const { return peak[static_cast<std::size_t>(type)]; }
  bool tf32{};  // has tensor cores for it, though on some parts no faster than plain f32
  bool tensor(DType type) const {
    return (type == DType::tf32 && tf32) || rate(type) > 1.5 * rate(DType::f32);
  }
};

Chip make_chip(const catalog::Gpu& gpu);

}  // namespace maya::estimate
