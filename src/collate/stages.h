// Stages of a pipeline that did not run, worked out from two that did.
//
// Middle stages do the same work on the same number of micro-batches; what differs is the order:
// how many forward passes come before the first backward pass, and so on. Two recorded stages with
// the unrecorded one between them are cut into blocks (blocks.h) and written as nested repetitions
// (repetition.h). If both nest alike, the counts of the stage between them follow, and its
// recording is put together from the earlier one's blocks: in its own order, with its own peers,
// its own events and its own memory, which PyTorch's allocator would take in that order
// (caching_allocator.h). If they do not nest alike, or if an event or a tensor would be used before
// it exists, the stage is not like its neighbours and has to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/trace.h"

namespace maya::collate {

struct DerivedStages {
  std::vector<trace::Recording> recordings;
  std::vector<std::int32_t> from;    // rank of the recording that each was put together from
  std::vector<std::int32_t> needed;  // ranks of stages that cannot be worked out from what there is
  std::string why;                   // they cannot
  std::vector<std::string> notes;
};

// `ends`: only whether the stages at the ends of each gap can be worked out; nothing is kept.
enum class Derive : std::uint8_t { all, ends };

// `recordings` in ascending order of ranks.
DerivedStages derive_stages(const std::vector<trace::Recording>& recordings,
                            Derive what = Derive::all);

// Ranks along the pipeline that the recorded rank is a stage of, in order; empty if it is none, or
// one of several pipelines that cross each other.
std::vector<std::int32_t> stages_of(const trace::Recording& recording);

}  // namespace maya::collate
