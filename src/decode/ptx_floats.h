// Floating-point arithmetic on numbers that are known: temperatures, acceptance rates and random
// numbers that steer an engine's samplers, not the data of a model.
//
// Exact as PTX describes it, in 32 and 64 bits with rounding to the nearest. What flushes denormal
// numbers, saturates, approximates or is not a number stays unknown. A product and a sum without a
// rounding of their own may become one instruction on the GPU; their last bit may then differ.
#pragma once

#include <string_view>
#include <vector>

#include "decode/ptx.h"
#include "decode/ptx_thread.h"

namespace maya::decode::ptx {

// What the instruction does, as far as it can be followed.
Float float_of(std::string_view name, const std::vector<std::string_view>& modifiers,
               const Instruction& in);

Value float_result(const Instruction& in, const Value* arguments);

}  // namespace maya::decode::ptx
