// The reason why something began when it did: the item or host call that it waited for last.
#pragma once

#include <cstdint>

namespace maya::simulate {

class Cause {
 public:
  enum class Kind : std::uint8_t { nothing, item, host };

  Cause() = default;
  static Cause item(std::uint32_t rank_class, std::uint32_t index) {
    return {1, rank_class, index};
  }
  static Cause host(std::uint32_t rank_class, std::uint32_t instruction) {
    return {2, rank_class, instruction};
  }

  Kind kind() const { return static_cast<Kind>(bits_ >> 62); }
  std::uint32_t rank_class() const { return static_cast<std::uint32_t>(bits_ >> 32) & 0x3fffffff; }
  std::uint32_t index() const { return static_cast<std::uint32_t>(bits_); }

 private:
  Cause(std::uint64_t kind, std::uint32_t c, std::uint32_t index)
      : bits_(kind << 62 | std::uint64_t{c} << 32 | index) {}
  std::uint64_t bits_{};
};

}  // namespace maya::simulate
