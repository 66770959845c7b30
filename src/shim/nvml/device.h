// The GPUs of the emulated node as NVML counts them: all of them, whatever CUDA_VISIBLE_DEVICES
// says.
#pragma once

#include <string>

#include "abi/nvml.h"
#include "session/machine.h"
#include "session/session.h"

namespace maya::shim::nvml {

inline int count() { return session::cluster().gpus_per_node; }

// A handle is the index, offset so that it is never null.
inline abi::nvmlDevice_t handle(int index) {
  return reinterpret_cast<abi::nvmlDevice_t>(0x4d4e'0000L + index);
}
inline int index_of(abi::nvmlDevice_t device) {
  auto index = reinterpret_cast<long>(device) - 0x4d4e'0000L;
  return index >= 0 && index < count() ? static_cast<int>(index) : -1;
}

// The device's number in this process; -1 when it is not visible here.
inline int visible(int index) {
  const auto& devices = session::visible_devices();
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i] == index) return static_cast<int>(i);
  return -1;
}

// The numbering cudaGetDeviceProperties uses (session/attributes.cpp).
inline unsigned bus(int index) { return 0x10u + 8u * static_cast<unsigned>(index); }
std::string bus_id(int index);  // "00000000:10:00.0"
std::string uuid(int index);    // "GPU-…"

inline bool has_nvlink() { return session::gpu().nvlink_links > 0 && count() > 1; }
inline bool has_nvswitch() { return session::cluster().nvswitch; }

}  // namespace maya::shim::nvml
