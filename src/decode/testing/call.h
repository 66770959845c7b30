// For tests: a launch as a framework makes it, built by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "decode/decode.h"

namespace maya::decode {

// Where the tensors of a launch may lie.
inline constexpr std::uint64_t A = 0x7f0000000000, B = 0x7f0010000000, C = 0x7f0020000000;

// Collects parameters in order and launches the kernel's decoder with them.
class Call {
 public:
  explicit Call(std::string name) { kernel_.mangled = kernel_.demangled = std::move(name); }
  template <class T>
  Call& arg(const T& value) {
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return raw(std::move(bytes));
  }
  Call& raw(std::vector<std::byte> bytes) {
    std::uint16_t at = 0;
    if (!kernel_.parameter_sizes.empty())
      at = static_cast<std::uint16_t>(kernel_.parameter_offsets.back() +
                                      kernel_.parameter_sizes.back());
    kernel_.parameter_offsets.push_back(at);
    kernel_.parameter_sizes.push_back(static_cast<std::uint16_t>(bytes.size()));
    values_.push_back(std::move(bytes));
    return *this;
  }
  Call& grid(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) {
    geometry_.grid = {x, y, z};
    return *this;
  }
  Call& block(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) {
    geometry_.block = {x, y, z};
    return *this;
  }
  // Who answers for the values in device memory.
  Call& values(const void* (*known)(std::uint64_t, std::uint64_t)) {
    known_ = known;
    return *this;
  }
  // Who says how far the memory behind an address reaches.
  Call& extents(std::uint64_t (*extent)(std::uint64_t)) {
    extent_ = extent;
    return *this;
  }
  Call& ptx(std::string_view text) {
    kernel_.ptx = text;
    return *this;
  }
  Decoded decode() {
    decoder_ = prepare(kernel_);
    pointers_.clear();
    for (auto& v : values_) pointers_.push_back(v.data());
    Launch launch{&kernel_, geometry_, pointers_.data(), extent_, known_};
    std::byte key[256];
    key_size = decoder_->key(launch, key, sizeof key);
    key_.assign(key, key + key_size);
    return decoder_->decode(launch);
  }
  template <class W>
  W work() {
    Decoded d = decode();
    EXPECT_TRUE(d.recognised) << kernel_.demangled;
    EXPECT_TRUE(std::holds_alternative<W>(d.op.work)) << kind_name(d.op.work);
    return std::holds_alternative<W>(d.op.work) ? std::get<W>(d.op.work) : W{};
  }
  std::size_t key_size{};
  std::vector<std::byte> key_;
  std::unique_ptr<Decoder> decoder_;

 private:
  Kernel kernel_;
  Geometry geometry_{{1, 1, 1}, {128, 1, 1}};
  const void* (*known_)(std::uint64_t, std::uint64_t){};
  std::uint64_t (*extent_)(std::uint64_t){};
  std::vector<std::vector<std::byte>> values_;
  std::vector<void*> pointers_;
};

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  if (bytes.size() < at + sizeof(T)) bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

}  // namespace maya::decode
