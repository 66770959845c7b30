// Detects gradient reductions that cannot overlap with the backward pass, because the compute
// stream waits for each of them right after it was issued.
#pragma once

#include "maya/report.h"

namespace maya::report {

struct Serialization {
  double reduced_bytes{};     // gradients that are reduced during the backward pass
  double serialized_bytes{};  // the part of them that the compute stream waits for immediately
  bool most() const { return serialized_bytes > 0.5 * reduced_bytes; }
};

Serialization serialization_of(const job::Job& job);

// The note for the user, which depends on the environment of the command; empty if there is none.
std::string serialization_help(const job::Job& job);

}  // namespace maya::report
