// NCCL's choice among the candidates for one message size.
#pragma once

#include <span>

#include "network/candidate.h"

namespace maya::network {

struct Choice {
  const Candidate* candidate{};
  int channels{};
};

// `in_switch`: NVSwitch can reduce this type and operation.
Choice choose(std::span<const Candidate> candidates, const Parameters& parameters,
              const Shape& shape, CollectiveKind kind, double bytes, bool in_switch);

// Whether the multimem instructions support the reduction: sums of floats, and minimum and maximum
// of most types. They do not support averages (a scaled sum), products, or 8-bit floats before
// Blackwell.
bool reduces_in_switch(const Collective& op, int capability_major);

}  // namespace maya::network
