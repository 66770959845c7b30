// Candidates for the boundaries of steps in one recording. A cut is the index of a symbol of a
// Sequence. Segment k lies between cut k and cut k + 1; if the candidate is accepted, each segment
// is a step.
#pragma once

#include <string_view>
#include <vector>

#include "collate/sequence.h"

namespace maya::collate {

using Cuts = std::vector<std::size_t>;

// Records of an NVTX range, from the record after range_push to the one after range_pop.
struct Range {
  std::uint32_t begin{}, end{};
};
std::vector<Range> ranges_named(const trace::Recording& recording, std::string_view name);

// `exactly`: only candidates with this many segments; 0: any number.
Cuts cuts_by_annotation(const trace::Recording& recording, const Sequence& sequence);
Cuts cuts_by_optimizer(const Sequence& sequence, std::size_t exactly);
Cuts cuts_by_backward(const Sequence& sequence);
Cuts cuts_by_period(const Sequence& sequence, std::size_t exactly);

}  // namespace maya::collate
