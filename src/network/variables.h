// Which environment variables a prediction uses. Recordings hold these and no others
// (docs/security.md), so what a name is for is decided here, in one place.
#pragma once

#include <cstdint>
#include <string_view>

namespace maya::network {

enum class VariableUse : std::uint8_t {
  none,          // not NCCL's, or without effect on a step's time: not recorded
  modelled,      // changes the prediction: recorded with its value
  not_modelled,  // changes NCCL's speed in ways the model does not follow: recorded, the user is
                 // told
  unknown,       // an NCCL_* variable nobody knows: its name is recorded, its value is not
};

VariableUse use_of(std::string_view name);

}  // namespace maya::network
