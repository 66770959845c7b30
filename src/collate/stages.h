// Derives the recordings of pipeline stages that did not run from two stages that did.
//
// Middle stages do the same work on the same number of micro-batches and differ in the order: how
// many forward passes come before the first backward pass, and so on. The two recorded stages
// around the missing one are divided into blocks (blocks.h) and described as nested repetitions
// (repetition.h). If both have the same nesting, the counts of the missing stage are interpolated.
// Its recording is then assembled from the blocks of the first stage, in the new order and with the
// missing stage's own peers, events and memory. The memory is what PyTorch's allocator requests for
// that order (caching_allocator.h). If the nestings differ, or if an event or a tensor would be
// used before it exists, the stage is not like its neighbours and has to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/trace.h"

namespace maya::collate {

struct DerivedStages {
  std::vector<trace::Recording> recordings;
  std::vector<std::int32_t> from;    // for each, the rank whose recording it was derived from
  std::vector<std::int32_t> needed;  // ranks of stages that cannot be derived and have to run
  std::string why;                   // the reason for `needed`
  std::vector<std::string> notes;
};

// `ends`: only checks whether the stages at the ends of each gap can be derived.
enum class Derive : std::uint8_t { all, ends };

// `recordings` are in ascending order of rank.
DerivedStages derive_stages(const std::vector<trace::Recording>& recordings,
                            Derive what = Derive::all);

// The ranks of the pipeline that the recorded rank belongs to, in order. Empty if it belongs to no
// pipeline or to several.
std::vector<std::int32_t> stages_of(const trace::Recording& recording);

}  // namespace maya::collate
