#include "decode/repeats.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace maya::decode {
namespace {

// 256 bytes of device memory, of which the first `known_bytes` are known.
constexpr std::uint64_t base = 0x7f0000000000;
std::array<std::byte, 256> memory;
std::uint64_t known_bytes, allocated;

const void* known(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t offset = address - base;
  return address >= base && offset + bytes <= known_bytes ? memory.data() + offset : nullptr;
}
std::uint64_t extent(std::uint64_t address) {
  return address >= base && address < base + allocated ? base + allocated - address : 0;
}

class RepeatsTest : public testing::Test {
 protected:
  void SetUp() override {
    memory.fill(std::byte{7});
    known_bytes = 100;
    allocated = 256;
    kernel_.parameter_sizes = {8, 4};
    effects_.ranges = {{base + 192, 4, true, 0}};
    effects_.data.assign(4, std::byte{1});
    effects_.steps = 1'000'000;
    effects_.lines_read = {base / Effects::line_bytes, base / Effects::line_bytes + 1};
    effects_.repeatable = true;
  }
  Launch launch(std::uint32_t number, std::uint32_t blocks = 1) {
    number_ = number;
    return {&kernel_, Geometry{{blocks, 1, 1}, {32, 1, 1}}, arguments_.data(), extent, known};
  }

  Kernel kernel_;
  Effects effects_;
  std::uint64_t pointer_ = base;
  std::uint32_t number_{};
  std::array<void*, 2> arguments_{&pointer_, &number_};
  Repeats repeats_;
};

TEST_F(RepeatsTest, AnEqualLaunchOnTheSameBytesIsFound) {
  EXPECT_EQ(repeats_.find(launch(1)), nullptr);
  repeats_.keep(launch(1), effects_);
  const Effects* found = repeats_.find(launch(1));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->data, effects_.data);
}

TEST_F(RepeatsTest, OtherArgumentsOrGeometryAreNotFound) {
  repeats_.keep(launch(1), effects_);
  EXPECT_EQ(repeats_.find(launch(2)), nullptr);
  EXPECT_EQ(repeats_.find(launch(1, 2)), nullptr);
}

TEST_F(RepeatsTest, AChangedByteOfTheLinesReadIsNoticed) {
  repeats_.keep(launch(1), effects_);
  memory[99] = std::byte{8};
  EXPECT_EQ(repeats_.find(launch(1)), nullptr);
  memory[99] = std::byte{7};
  EXPECT_NE(repeats_.find(launch(1)), nullptr);
}

TEST_F(RepeatsTest, AByteThatBecameKnownOrUnknownIsNoticed) {
  repeats_.keep(launch(1), effects_);
  for (std::uint64_t other : {99, 101}) {
    known_bytes = other;
    EXPECT_EQ(repeats_.find(launch(1)), nullptr) << other;
  }
}

bool any_known;
bool possible(std::uint64_t address, std::uint64_t) { return address < base || any_known; }

TEST_F(RepeatsTest, AreasWithoutKnownBytesAreComparedAsAWhole) {
  effects_.lines_read.clear();
  effects_.unknown_areas = {base / Effects::area_bytes};
  Launch asked = launch(1);
  asked.possible = possible;
  any_known = false;
  repeats_.keep(asked, effects_);
  EXPECT_NE(repeats_.find(asked), nullptr);
  any_known = true;
  EXPECT_EQ(repeats_.find(asked), nullptr);
}

TEST_F(RepeatsTest, MemoryThatWasFreedIsNotWritten) {
  repeats_.keep(launch(1), effects_);
  allocated = 194;
  EXPECT_EQ(repeats_.find(launch(1)), nullptr);
}

TEST_F(RepeatsTest, CheapAndUnrepeatableLaunchesAreNotKept) {
  effects_.steps = 1000;
  repeats_.keep(launch(1), effects_);
  EXPECT_EQ(repeats_.find(launch(1)), nullptr);
  effects_.steps = 1'000'000;
  effects_.repeatable = false;
  repeats_.keep(launch(1), effects_);
  EXPECT_EQ(repeats_.find(launch(1)), nullptr);
}

TEST_F(RepeatsTest, TheOldestLaunchGivesWay) {
  for (std::uint32_t i = 0; i < 5; ++i) repeats_.keep(launch(i), effects_);
  EXPECT_EQ(repeats_.find(launch(0)), nullptr);
  for (std::uint32_t i = 1; i < 5; ++i) EXPECT_NE(repeats_.find(launch(i)), nullptr) << i;
}

}  // namespace
}  // namespace maya::decode
