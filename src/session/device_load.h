// How busy the devices of this node are, for monitors. Without virtual time nothing is known of
// that, and the devices are idle.
#pragma once

#include <cstdint>
#include <vector>

#include "clock/device_load.h"
#include "session/session.h"

namespace maya::session {

// `index`: within the node, whatever CUDA_VISIBLE_DEVICES says.
MAYA_EXPORT clock::Load device_load(int index);

struct DeviceEnergy {
  double seconds{};             // of the job so far
  double full_power_seconds{};  // what the device has drawn above its idle draw, at its limit
};
MAYA_EXPORT DeviceEnergy device_energy(int index);

struct DeviceUser {
  std::int32_t process{};
  std::uint64_t bytes{};
};
MAYA_EXPORT std::vector<DeviceUser> device_users(int index);

}  // namespace maya::session
