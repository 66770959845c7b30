// Divides a recording into blocks that the schedule of a pipeline may execute in another order.
// Blocks end before and after messages, and where another thread continues (backward passes run in
// a thread of their own).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "maya/trace.h"

namespace maya::collate {

struct Blocks {
  std::vector<std::uint32_t> begin;    // first record of each block, then the end of the last block
  std::vector<std::uint32_t> letters;  // one per block; equal for blocks with identical work
  // Per record: a hash of the previous record in the same block; 0 at the beginning of a block.
  std::vector<std::uint64_t> place;
};

// Divides several recordings into blocks with the same letters. Host times, memory, annotations,
// ids of events and the rank itself are not compared; peers are compared by their distance from the
// rank.
std::vector<Blocks> cut_alike(std::span<const trace::Recording* const> recordings);

}  // namespace maya::collate
