#include "values/known_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "device/memory.h"

namespace maya::values {
namespace {

class KnownBytesTest : public testing::Test {
 protected:
  device::Memory memory{1, std::uint64_t{1} << 30, 0};
  KnownBytes values{memory.base(), memory.span()};
  std::uint64_t base = memory.base();
};

TEST_F(KnownBytesTest, WhatIsStoredIsReadAndTheRestIsZero) {
  int data[4] = {1, 2, 3, 4};
  values.store(base + 100, data, sizeof data);
  int out[6] = {9, 9, 9, 9, 9, 9};
  EXPECT_FALSE(values.load(out, base + 96, sizeof out));
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[4], 4);
  EXPECT_EQ(out[5], 0);
  EXPECT_TRUE(values.load(out, base + 104, 8));
  EXPECT_EQ(out[0], 2);
}

TEST_F(KnownBytesTest, FillsRepeatTheirPattern) {
  const std::string_view pattern = "abcdefgh";
  for (std::uint64_t width : {1, 2, 4, 8})
    for (std::uint64_t bytes : {1, 8, 15, 1030}) {
      values.fill(base + 3, pattern.data(), width, bytes);
      std::string out(bytes, '?');
      ASSERT_TRUE(values.load(out.data(), base + 3, bytes));
      for (std::uint64_t i = 0; i < bytes; ++i)
        ASSERT_EQ(out[i], pattern[i % width]) << width << " " << i;
      values.forget(base + 3, bytes);
    }
}

TEST_F(KnownBytesTest, WhatIsSupposedIsReadByTheHostAndUnknownToKernels) {
  const float half = 0.5f;
  float out[4]{};
  values.suppose(base + 64, &half, 4, 16);
  EXPECT_FALSE(values.load(out, base + 64, 16));
  EXPECT_EQ(out[3], half);
  EXPECT_EQ(values.known(base + 64, 4), nullptr);
  EXPECT_FALSE(values.any(base + 64, 16));
  std::uint64_t width = 0;
  values.copy(base + 4096, base + 64, 16);
  EXPECT_NE(values.supposed(base + 4096, 16, width), nullptr);
  EXPECT_EQ(width, 4u);
  EXPECT_EQ(values.supposed(base + 4096, 20, width), nullptr);
  values.store(base + 68, &width, 4);  // known beside it
  EXPECT_NE(values.known(base + 68, 4), nullptr);
  EXPECT_EQ(values.known(base + 64, 8), nullptr);
  EXPECT_NE(values.supposed(base + 72, 8, width), nullptr);
  values.forget(base, 8192);
  values.load(out, base + 64, 16);
  EXPECT_EQ(out[3], 0.0f);
}

TEST_F(KnownBytesTest, ForgettingAPartKeepsTheOthers) {
  std::vector<char> data(3000, 7);
  values.store(base, data.data(), data.size());
  values.forget(base + 1000, 1000);
  EXPECT_NE(values.known(base, 1000), nullptr);
  EXPECT_EQ(values.known(base, 1001), nullptr);
  EXPECT_NE(values.known(base + 2000, 1000), nullptr);
  values.forget_from(base + 2500);
  EXPECT_EQ(values.known(base + 2000, 1000), nullptr);
  EXPECT_NE(values.known(base + 2000, 500), nullptr);
  values.forget_from(base + 2000, 100);
  EXPECT_EQ(values.known(base + 2000, 500), nullptr);
  EXPECT_NE(values.known(base + 2100, 400), nullptr);
}

TEST_F(KnownBytesTest, TheFilterSaysNoWhereNothingIsKnown) {
  EXPECT_FALSE(values.possible(base + 5000));
  char one = 1;
  values.store(base + 5000, &one, 1);
  EXPECT_TRUE(values.possible(base + 5000));
  values.forget(base + 5000, 1);
  EXPECT_FALSE(values.possible(base + 5000));
  EXPECT_FALSE(values.possible(0x10));
}

TEST_F(KnownBytesTest, CopiesCarryValuesAndUnknownsOverwrite) {
  long data[2] = {5, 6}, out[2] = {};
  values.store(base, data, sizeof data);
  values.copy(base + 4096, base, sizeof data);
  EXPECT_TRUE(values.load(out, base + 4096, sizeof out));
  EXPECT_EQ(out[1], 6);
  values.copy(base + 4096, base + 100000, 8);  // from unknown bytes
  EXPECT_FALSE(values.load(out, base + 4096, sizeof out));
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 6);
}

class Promise : public KnownBytes::Pending {
 public:
  explicit Promise(bool known) : known_(known) {}
  int asked = 0;
  bool resolve(void* to, std::uint64_t bytes) override {
    ++asked;
    std::memset(to, 3, bytes);
    return known_;
  }

 private:
  bool known_;
};

TEST_F(KnownBytesTest, PromisesAreResolvedOnceWhenSomebodyLooks) {
  auto kept = std::make_shared<Promise>(true), broken = std::make_shared<Promise>(false);
  values.promise(base, 16, kept);
  values.promise(base + 16, 16, broken);
  EXPECT_EQ(kept->asked, 0);
  char out[32];
  EXPECT_FALSE(values.load(out, base, 32));
  EXPECT_EQ(out[15], 3);
  EXPECT_EQ(out[16], 0);
  EXPECT_TRUE(values.load(out, base, 16));
  EXPECT_EQ(kept->asked, 1);
  EXPECT_EQ(broken->asked, 1);
}

TEST_F(KnownBytesTest, RandomUseAgreesWithAPlainCopy) {
  constexpr std::size_t size = 8192;
  std::vector<unsigned char> plain(size);
  std::vector<bool> known(size);
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::size_t at = random() % size, n = 1 + random() % (size - at);
    if (n > 600) n = 1 + n % 600;
    switch (random() % 4) {
      case 0: {
        std::vector<unsigned char> data(n);
        for (auto& b : data) b = static_cast<unsigned char>(random());
        values.store(base + at, data.data(), n);
        for (std::size_t k = 0; k < n; ++k) plain[at + k] = data[k], known[at + k] = true;
        break;
      }
      case 1:
        values.forget(base + at, n);
        for (std::size_t k = 0; k < n; ++k) known[at + k] = false;
        break;
      default: {
        std::vector<unsigned char> out(n);
        bool all = true;
        bool answer = values.load(out.data(), base + at, n);
        for (std::size_t k = 0; k < n; ++k) {
          all = all && known[at + k];
          ASSERT_EQ(out[k], known[at + k] ? plain[at + k] : 0);
          if (known[at + k]) {
            ASSERT_TRUE(values.possible(base + at + k));
          }
        }
        ASSERT_EQ(answer, all);
      }
    }
  }
}

TEST_F(KnownBytesTest, ThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      std::uint64_t own = base + t * 1000;  // neighbours share grains
      for (int i = 0; i < 3000; ++i) {
        long v = i, out = 0;
        values.store(own, &v, sizeof v);
        ASSERT_TRUE(values.load(&out, own, sizeof out));
        ASSERT_EQ(out, v);
        if (i % 3 == 0) values.forget(own, sizeof v);
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace maya::values
