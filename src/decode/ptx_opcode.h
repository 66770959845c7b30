// What an instruction of PTX is, from its opcode: "ld.global.v4.b32", "mma.sync…m16n8k16…".
#pragma once

#include <string_view>

#include "decode/ptx.h"

namespace maya::decode::ptx {

// "u32", "pred", "bf16x2": false when it is not a type.
bool type_of(std::string_view s, Type& type);

// Sets the instruction's code, types and what it moves and computes; its arguments are read
// already. The program learns which data its tensor cores work on.
void classify(std::string_view opcode, Instruction& instruction, Program& program);

}  // namespace maya::decode::ptx
