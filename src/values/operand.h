// The operand of a kernel as numbers: loaded from known bytes, stored back as its type.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "values/known_bytes.h"
#include "values/semantics.h"

namespace maya::values {

using Operand = Semantics::Operand;
using Number = long double;  // 64 bits of mantissa hold every int64 exactly
using Column = std::vector<Number>;

std::optional<Number> read(DType type, const char* p);
bool write(DType type, char* p, Number value);

std::int64_t count(const Operand& o);
// Bytes from the address to an element, counted in the operand's own order.
std::int64_t offset(const Operand& o, std::int64_t index);
// The bytes an operand can reach, relative to its address: strides may be negative.
struct Range {
  std::int64_t low{}, high{};
};
Range range(const Operand& o);
// Its elements lie side by side, in its own order.
bool dense(const Operand& o);

// Nothing if an element is unknown, or if there is more than `limit` bytes of them.
std::optional<Column> load(const Operand& o, KnownBytes& values, std::uint64_t limit);
void store(const Operand& o, const Column& data, KnownBytes& values, std::uint64_t limit);
void forget(const Operand& o, KnownBytes& values);

}  // namespace maya::values
