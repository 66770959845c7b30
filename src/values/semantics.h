// What a kernel does to values, declared: decoders write it (src/decode), compute.h runs it.
//
// Most kernels have none: what they write becomes unknown. Those whose result a host may look at
// (sizes, indices, counts, masks) say here which function of which operands they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "maya/dtype.h"

namespace maya::values {

struct Semantics {
  enum class Kind : std::uint8_t {
    unknown,
    fill,
    copy_cast,
    arange,
    unary,
    binary,
    compare,
    reduce,
    scan,
    histogram,
    sort,
    topk,
    gather,
    scatter,
    where,
    nonzero_count,
    nonzero_write,  // the places of the nonzero ones, and in the second output how many
    unique,         // of sorted input, and in the second output how many
    repeat,         // each place as often as the first input says, ending where the second says
    unravel,        // k linear indices in place, into one row per dimension of the output
    differences,    // 1 where an element differs from the one before
    triangle,       // the "upper" or "lower" one of the first two dimensions, from diagonal k on
    search,         // places of the first input in the sorted second, whose rows are k long; `from`
                    // of the first for each row, 0: one row serves all
    literal,        // `literal` is written to the first output
    suppose,        // unknown, but a host that looks may take every element for `scalar`
    random,         // integers from `from` on, `k` different ones, drawn by `seed`
    loss_scale  // scale, growth tracker; found_inf: growth by scalar, backoff by scalar2 after k
                // steps
  } kind{Kind::unknown};
  std::string function;  // "add", "mul", "eq", "sum", …
  // Operands: element types, address, up to 8 dims (sizes, byte strides), the fastest dimension
  // first. A reduction's output has size 1 where its input is reduced; sort and topk work along
  // dimension 0, scan in rows of k.
  struct Operand {
    DType dtype{};
    std::uint64_t address{};
    std::int32_t rank{};
    std::int64_t size[8]{}, stride[8]{};
  };
  std::vector<Operand> outputs, inputs;
  double scalar{};   // fill value, functor's scalar, arange start
  double scalar2{};  // arange step
  std::int64_t axis{-1}, k{};
  std::int64_t from{};
  std::uint64_t seed{};
  // gather: output[i] = first input[i + index · stride …]; scatter: output[i + index · stride …] =
  // first input[i]. The other inputs are the indices, one step each; all operands have the shape of
  // the iteration, elements are moved as they are. A scatter of a constant has no source:
  // `constant` holds its bytes.
  struct Step {
    std::int64_t size{}, stride{};  // of the indexed dimension: elements, bytes
  };
  std::vector<Step> steps;
  std::array<std::byte, 16> constant{};
  bool from_constant{};
  std::vector<std::int64_t> literal;
  std::vector<Semantics> parts;  // several moves of one launch, in order, before this one
};

// Elements of probabilities that a host may look at one by one; attention has more.
constexpr std::int64_t most_supposed = 1 << 14;

}  // namespace maya::values
