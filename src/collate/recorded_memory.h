// Device memory in a recording: which records request and release it, and how much there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "maya/trace.h"

namespace maya::collate {

bool takes_device_memory(const std::vector<trace::Record>& records, std::size_t i);
bool gives_device_memory(const std::vector<trace::Record>& records, std::size_t i);

// The peak of the allocated device memory.
std::uint64_t peak_memory(const trace::Recording& recording);

}  // namespace maya::collate
