// Gradient reductions that cannot overlap with the backward pass, because the computing stream
// waits for each right after it was issued.
#pragma once

#include "maya/report.h"

namespace maya::report {

struct Serialization {
  double reduced_bytes{};     // gradients reduced while the backward pass went on
  double serialized_bytes{};  // … of which the computing stream waited for the end at once
  bool most() const { return serialized_bytes > 0.5 * reduced_bytes; }
};

Serialization serialization_of(const job::Job& job);

// What to tell the user, given the environment that the command ran with; empty if there is
// nothing.
std::string serialization_help(const job::Job& job);

}  // namespace maya::report
