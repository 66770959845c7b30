// Functions of CUDA by the numbers that CUPTI has for them.
#pragma once

#include <cstdint>

#include "maya/trace.h"

namespace maya::cupti {

// The function of the runtime that a record is shown as; 0: none.
std::uint32_t cbid_of(trace::Kind kind);
// The type of a record of synchronization; 0: it does not wait.
std::uint32_t sync_type(trace::Kind kind);

// Null: unknown.
const char* runtime_name(std::uint32_t cbid);
const char* driver_name(std::uint32_t cbid);

}  // namespace maya::cupti
