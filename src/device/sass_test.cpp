#include "device/sass.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

namespace maya::device {
namespace {

std::string code(std::initializer_list<std::array<std::uint64_t, 2>> instructions) {
  std::string bytes;
  for (const auto& words : instructions) {
    char one[16];
    std::memcpy(one, words.data(), sizeof one);
    bytes.append(one, sizeof one);
  }
  return bytes;
}

// As nvdisasm prints them of a kernel that ptxas 12.8 compiled for sm_90.
TEST(Sass, CountsWhatAThreadMoves) {
  const std::string spills = code({
      {0x003fd00401007387, 0x0001e20000100800},  // STL [R1+0x3fd0], R4
      {0x0013600c01007387, 0x0041e20000100a00},  // STL.64 [R1+0x1360], R12
      {0x00000010060c8981, 0x000ea2000c1e1d00},  // @!P0 LDG.E.128 R12, desc[UR16][R6.64]
  });
  EXPECT_EQ(memory_code(spills).local_bytes, 4u + 8);
  EXPECT_EQ(memory_code(spills).global_bytes, 16u);
  // A piece of an instruction at the end is none.
  EXPECT_EQ(memory_code(spills.substr(0, 17)).local_bytes, 4u);
  EXPECT_EQ(memory_code({}).global_bytes, 0u);
}

}  // namespace
}  // namespace maya::device
