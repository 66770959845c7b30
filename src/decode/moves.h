// What the kernels that pick and place elements by index mean, read off their arguments.
#pragma once

#include "decode/offsets.h"
#include "decode/operands.h"

namespace maya::decode {

// Elements are moved, not computed: any type of the size will do.
DType type_of_bytes(std::int64_t bytes);
// The type a user would most likely have of that size, for what only depends on it in the estimate.
DType type_of_size(int bytes);
Semantics::Operand line(std::uint64_t address, DType type, std::int64_t elements);

// index_elementwise_kernel and _scatter_gather_elementwise_kernel: the lambda behind its
// OffsetCalculator.
Semantics strided_move(const Arguments& a, const Offsets& offsets, std::string_view lambda,
                       DType dtype, int bytes);
// index_select (dst, src, indices), index_add (dst, src, indices): slices of the other dimensions.
Semantics slice_move(const Arguments& a, const Signature& signature, bool scatter,
                     std::string function);

}  // namespace maya::decode
