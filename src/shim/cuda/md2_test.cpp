#include "shim/cuda/md2.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace maya::shim::cuda {
namespace {

std::string hash(const std::string& text) {
  Md2 md2;
  md2.add(text.data(), text.size());
  std::string hex;
  for (const std::uint8_t byte : md2.digest()) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    hex += two;
  }
  return hex;
}

// The test suite of RFC 1319.
TEST(Md2, HashesAsTheRfcSays) {
  EXPECT_EQ(hash(""), "8350e5a3e24c153df2275c9f80692773");
  EXPECT_EQ(hash("a"), "32ec01ec4a6dac72c0ab96fb34c0b5d1");
  EXPECT_EQ(hash("abc"), "da853b0d3f88d99b30283a69e6ded6bb");
  EXPECT_EQ(hash("message digest"), "ab4f496bfb2a530b219ff33031fe06b0");
  EXPECT_EQ(
      hash("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
      "d5976f79d83d3a0dc9806c3c66f3efd8");
}

}  // namespace
}  // namespace maya::shim::cuda
