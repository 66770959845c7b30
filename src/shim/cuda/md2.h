// The hash function MD2 (RFC 1319), and messages authenticated with it (HMAC, RFC 2104).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace maya::shim::cuda {

using Digest = std::array<std::uint8_t, 16>;

class Md2 {
 public:
  void add(const void* bytes, std::size_t count);
  Digest digest();

 private:
  void take(const std::array<std::uint8_t, 16>& block);

  std::array<std::uint8_t, 48> state_{};
  std::array<std::uint8_t, 16> checksum_{}, block_{};
  std::size_t filled_ = 0;
};

// A key has the length of a block.
class HmacMd2 {
 public:
  explicit HmacMd2(const Digest& key);
  void add(const void* bytes, std::size_t count) { inner_.add(bytes, count); }
  Digest digest();

 private:
  Digest key_;
  Md2 inner_;
};

}  // namespace maya::shim::cuda
