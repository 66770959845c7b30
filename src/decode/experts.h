// Products of a mixture of experts, whatever kernel computes them.
//
// Which rows go to which expert lies on the device, and the router's scores are never computed. So
// every expert is taken to be equally likely for each token (its choices are distinct): of few
// tokens some experts get none, and their weights are not read. Launches of a product name the
// experts whose weights lie on this rank; how many there are on all ranks, and how many a token is
// given to, is told by the kernels around it.
#pragma once

#include <cstdint>
#include <optional>

#include "decode/rule.h"

namespace maya::decode {

// What kernels of the process said last of its router; 0: nothing yet.
struct Router {
  std::int64_t experts{}, top{};
};
Router last_router();
void note_router(Router router);  // fields that are 0 leave what is known

// How many experts' weights of these bytes lie behind an address, as far as the allocation tells.
std::int64_t experts_behind(const Launch& launch, std::uint64_t address, double bytes_each);

struct Dealt {
  std::int64_t rows{};   // of all ranks: tokens · top
  std::int64_t local{};  // experts on this rank
  std::int64_t top{};    // 0: not told by this launch
  std::int64_t hit{};    // experts that get a row, where values tell; else 0
};
// Fills in rows, groups and the fields of experts.
void deal(Gemm& work, const Dealt& dealt);

}  // namespace maya::decode
