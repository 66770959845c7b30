// What the emulated GPU answers when asked about itself. Numbers of attributes are the driver's
// (CUdevice_attribute), which the runtime shares.
#pragma once

#include <cstdint>

#include "session/session.h"

namespace maya::session {

inline constexpr int driver_version = 13020;

// False for a number nobody knows.
MAYA_EXPORT bool device_attribute(int attribute, int device, int& value);
// 16 bytes; the last two hold the device's number, so that a UUID can be turned back.
MAYA_EXPORT void device_uuid(int device, unsigned char* uuid);
// "0000:1b:00.0"
MAYA_EXPORT void device_bus_id(int device, char* text, std::size_t bytes);
MAYA_EXPORT int physical_device(int device);

}  // namespace maya::session
