// What the names of GEMM kernels tell, shared by their decoders.
#pragma once

#include "decode/rule.h"

namespace maya::decode {

// The type whose rate counts, from the element types that a CUTLASS name spells out.
DType gemm_operand_type(std::string_view text);
// Operand and result types that go with it.
Gemm gemm_of(DType type);

}  // namespace maya::decode
