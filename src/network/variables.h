// Classifies environment variables. Recordings contain only the variables that a prediction uses
// (docs/security.md); this is the single place that decides which.
#pragma once

#include <cstdint>
#include <string_view>

namespace maya::network {

enum class VariableUse : std::uint8_t {
  none,          // not of NCCL, or without effect on the time of a step: not recorded
  modelled,      // changes the prediction: recorded with its value
  not_modelled,  // changes NCCL's speed, but is not modelled: recorded, and reported to the user
  unknown,       // an unknown NCCL_* variable: its name is recorded, its value is not
};

VariableUse use_of(std::string_view name);

}  // namespace maya::network
