// Activity records: what the program called and what ran on the device, from the live timeline.
#pragma once

#include <cstdint>

#include "abi/cupti_activity.h"

namespace maya::cupti {

using Request = void(std::uint8_t**, std::size_t*, std::size_t*);
using Complete = void(abi::CUctx_st*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t);

void set_buffers(Request* request, Complete* complete);
void set_clock(std::uint64_t (*clock)());
std::uint64_t stamp_now();

// Recording begins with the first kind that is enabled, and ends with the last.
void enable(abi::CUpti_ActivityKind kind, bool on);
void push_external(int kind, std::uint64_t id);
bool pop_external(int kind, std::uint64_t* id);

// Hands over everything so far; `finish`: and what is still under way on the device.
void flush(bool finish);

std::size_t record_size(abi::CUpti_ActivityKind kind);

}  // namespace maya::cupti
