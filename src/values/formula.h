// Large integer and boolean tensors that follow from small known ones, kept as what they are
// computed from: the mask of an attention over all its places is one comparison of two index
// vectors. Nothing is computed until somebody asks, and a reduction asks for a part at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "values/known_bytes.h"
#include "values/operand.h"
#include "values/semantics.h"

namespace maya::values {

class Formula : public KnownBytes::Pending {
 public:
  // The formula of a pointwise kernel's output, if all its inputs are known or formulas.
  static std::shared_ptr<Formula> of(const Semantics& s, KnownBytes& values, std::uint64_t limit);

  // The elements at these places of the output, in its own (dense) order. False: cannot be told.
  bool at(const std::vector<std::int64_t>& places, std::vector<std::int64_t>& out) const;

  bool resolve(void* to, std::uint64_t bytes) override;
  bool resolvable(std::uint64_t bytes) const override { return bytes <= 64 << 20; }
  bool copyable() const override { return true; }

 private:
  struct Input {
    Operand shape;                     // strides in bytes, as the kernel sees it
    std::vector<char> bytes;           // of a small input
    std::int64_t low{};                // where they begin, against the operand's address
    std::shared_ptr<Formula> formula;  // of a large one
    std::int64_t first{};              // the element of the formula at the operand's address
  };

  Semantics::Kind kind_{};
  std::string function_;
  double scalar_{};
  Operand out_;
  std::vector<Input> inputs_;
};

// The result of a sum, any or all over a formula. Where each result covers a block of a mask of
// more than a few million elements, a regular sample of the block is taken that has its corners:
// "none" and "all", which is what such sums are for, come out right.
std::optional<Column> reduce_formula(const Semantics& s, KnownBytes& values);

}  // namespace maya::values
