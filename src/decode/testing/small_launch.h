// Small kernels over memory of which some bytes are known, for tests of ptx_machine.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "decode/ptx_machine.h"

namespace maya::decode::ptx {

// Device memory of which some bytes are known.
inline std::map<std::uint64_t, std::vector<std::byte>> known_memory;
constexpr std::uint64_t base = 0x7f0000000000, each = std::uint64_t{1} << 20;

inline std::uint64_t extent(std::uint64_t address) {
  return address >= base && address < base + 16 * each ? each - (address - base) % each : 0;
}

inline const void* known(std::uint64_t address, std::uint64_t bytes) {
  auto it = known_memory.upper_bound(address);
  if (it == known_memory.begin()) return nullptr;
  --it;
  const std::uint64_t offset = address - it->first;
  if (offset + bytes > it->second.size()) return nullptr;
  return it->second.data() + offset;
}

inline bool possible(std::uint64_t address, std::uint64_t bytes) {
  return std::any_of(known_memory.begin(), known_memory.end(), [&](const auto& stretch) {
    return stretch.first < address + bytes && address < stretch.first + stretch.second.size();
  });
}

class SmallLaunch {
 public:
  // The body of a kernel with four pointers in %rd1 to %rd4 and one number in %r1.
  explicit SmallLaunch(std::string body) : body_(std::move(body)) { known_memory.clear(); }

  template <class T>
  SmallLaunch& tensor(int parameter, std::vector<T> values) {
    auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    known_memory[base + static_cast<std::uint64_t>(parameter) * each].assign(
        bytes, bytes + values.size() * sizeof(T));
    return *this;
  }
  SmallLaunch& number(std::uint64_t n) {
    number_ = n;
    return *this;
  }
  SmallLaunch& threads(std::uint32_t blocks, std::uint32_t each_block) {
    grid_ = blocks, block_ = each_block;
    return *this;
  }

  bool go() {
    std::string text = ".extern .shared .align 16 .b8 smem[];\n.visible .entry k(";
    for (int i = 0; i < 4; ++i) text += ".param .u64 .ptr .global p" + std::to_string(i) + ", ";
    text += ".param .u32 p4)\n{ .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .pred %p<9>;\n";
    for (int i = 0; i < 4; ++i)
      text += "ld.param.u64 %rd" + std::to_string(i + 1) + ", [p" + std::to_string(i) + "];\n";
    text += "ld.param.u32 %r1, [p4];\n" + body_ + "\nret; }";
    program_ = parse(text, "k");
    EXPECT_TRUE(program_);
    for (int i = 0; i < 4; ++i) values_.push_back(base + static_cast<std::uint64_t>(i) * each);
    values_.push_back(number_);
    std::vector<void*> pointers;
    for (auto& v : values_) pointers.push_back(&v);
    kernel_.parameter_sizes = {8, 8, 8, 8, 4};
    Geometry geometry{{grid_, 1, 1}, {block_, 1, 1}};
    geometry.shared_bytes = 1024;
    Launch launch{&kernel_, geometry, pointers.data(), extent, known, possible};
    effects_ = {};
    const bool good = Machine(*program_, launch).run(effects_);
    // Threads that store nothing may be left out: nobody sees a difference.
    const Scout scout(*program_);
    for (std::uint64_t* steps : {&scouted_steps_, &repeated_steps_}) {
      Effects scouted;
      EXPECT_EQ(Machine(*program_, launch, 48000000, &scout).run(scouted), good);
      if (effects_.steps < 1000000) {  // all of it was run
        EXPECT_EQ(scouted.data, effects_.data);
        EXPECT_EQ(scouted.ranges.size(), effects_.ranges.size());
        EXPECT_TRUE(!good || scouted.lines_read.size() <= effects_.lines_read.size());
      }
      *steps = scouted.steps;
    }
    return good;
  }
  // With the values of the launch before, and what that assumes.
  bool go_where_unknown_numbers_differ() {
    std::vector<void*> pointers;
    for (auto& v : values_) pointers.push_back(&v);
    Launch launch{&kernel_, {{grid_, 1, 1}, {block_, 1, 1}}, pointers.data(), extent, known,
                  possible};
    effects_ = {};
    Machine machine(*program_, launch);
    machine.take_unknown_numbers_to_differ();
    return machine.run(effects_);
  }
  std::uint64_t scouted_steps() const { return scouted_steps_; }
  // With the values of the launch before.
  std::uint64_t repeated_steps() const { return repeated_steps_; }
  // Values of a tensor change, and the launch is made again by the same scout.
  template <class T>
  bool again(int parameter, std::vector<T> values) {
    const Scout scout(*program_);
    std::vector<void*> pointers;
    for (auto& v : values_) pointers.push_back(&v);
    Geometry geometry{{grid_, 1, 1}, {block_, 1, 1}};
    geometry.shared_bytes = 1024;
    Launch launch{&kernel_, geometry, pointers.data(), extent, known, possible};
    Effects first;
    Machine(*program_, launch, 48000000, &scout).run(first);
    tensor(parameter, values);
    effects_ = {};
    return Machine(*program_, launch, 48000000, &scout).run(effects_);
  }

  // What the launch wrote there; empty: not known (or not written).
  template <class T>
  std::optional<T> wrote(int parameter, std::uint64_t index) const {
    const std::uint64_t at =
        base + static_cast<std::uint64_t>(parameter) * each + index * sizeof(T);
    for (const auto& range : effects_.ranges) {
      if (!range.known || at < range.address || at + sizeof(T) > range.address + range.bytes)
        continue;
      T value;
      std::memcpy(&value, effects_.data.data() + range.data + (at - range.address), sizeof value);
      return value;
    }
    return std::nullopt;
  }
  const Effects& effects() const { return effects_; }
  Knowable can_know() const { return knowable(*program_); }

 private:
  std::string body_;
  std::uint64_t number_{};
  std::uint32_t grid_{1}, block_{32};
  Kernel kernel_;
  std::vector<std::uint64_t> values_;
  std::unique_ptr<Program> program_;
  Effects effects_;
  std::uint64_t scouted_steps_{}, repeated_steps_{};
};

constexpr const char* own_place = R"(
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  mul.wide.s32 %rd10, %r5, 4;
  add.s64 %rd11, %rd1, %rd10; add.s64 %rd12, %rd2, %rd10; add.s64 %rd13, %rd3, %rd10;
)";

}  // namespace maya::decode::ptx
