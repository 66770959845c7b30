// A fill with one byte, kept without its bytes until somebody looks: masks of a mixture of experts
// are filled with zeros before the chosen places are marked, and so is much that nobody looks at.
#pragma once

#include <cstring>

#include "values/known_bytes.h"

namespace maya::values {

class Constant : public KnownBytes::Pending {
 public:
  explicit Constant(std::uint8_t byte) : byte_(byte) {}
  bool resolve(void* to, std::uint64_t bytes) override {
    std::memset(to, byte_, bytes);
    return true;
  }
  bool copyable() const override { return true; }

 private:
  std::uint8_t byte_;
};

}  // namespace maya::values
