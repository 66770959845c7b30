// A recording cut where a pipeline's schedule may put its pieces in another order: before and after
// messages, and where another thread goes on (backward passes run in a thread of their own).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "maya/trace.h"

namespace maya::collate {

struct Blocks {
  std::vector<std::uint32_t> begin;    // record at which each block begins; the end of the last
  std::vector<std::uint32_t> letters;  // equal for blocks that ask the same of the device
  // Per record: what the last record before it in its block asks for; 0 at the beginning.
  std::vector<std::uint64_t> place;
};

// Cuts several recordings and numbers their blocks alike. Left out of the comparison: host times,
// memory, annotations, the numbers of events, and the place of the rank itself (peers count as
// distances).
std::vector<Blocks> cut_alike(std::span<const trace::Recording* const> recordings);

}  // namespace maya::collate
