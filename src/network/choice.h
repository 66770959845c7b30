// NCCL's choice among the candidates for one message size.
#pragma once

#include <span>

#include "network/candidate.h"

namespace maya::network {

struct Choice {
  const Candidate* candidate{};
  int channels{};
};

// `in_switch`: type and operation are such that NVSwitch can reduce them.
Choice choose(std::span<const Candidate> candidates, const Parameters& parameters,
              const Shape& shape, CollectiveKind kind, double bytes, bool in_switch);

// What the multimem instructions support: sums of floats, and minimum / maximum of most types; not
// averages (a scaled sum), products or 8-bit floats before Blackwell.
bool reduces_in_switch(const Collective& op, int capability_major);

}  // namespace maya::network
