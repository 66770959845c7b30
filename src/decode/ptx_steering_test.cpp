// Loops whose length stands in memory, as those of FlexAttention over the blocks of its mask.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "decode/decode.h"
#include "decode/ptx.h"

namespace maya::decode {
namespace {

// for (i = 0; i < min(counts[block], bound); ++i) read 4 bytes of data
constexpr std::string_view masked = R"(
.visible .entry masked(.param .u64 .ptr .global counts, .param .u64 .ptr .global data,
                       .param .u32 bound) {
  ld.param.u64 %rd1, [counts];
  ld.param.u64 %rd2, [data];
  ld.param.u32 %r9, [bound];
  mov.u32 %r1, %ctaid.x;
  mul.wide.s32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.b32 %r2, [%rd4];
  setp.lt.s32 %p1, %r2, 1;
  @%p1 bra DONE;
  min.s32 %r3, %r2, %r9;
  mov.u32 %r4, 0;
LOOP:
  mul.wide.s32 %rd5, %r4, 4;
  add.s64 %rd6, %rd2, %rd5;
  ld.global.b32 %r5, [%rd6];
  add.s32 %r4, %r4, 1;
  fma.rn.f32 %f1, %f2, %f3, %f1;
  setp.ne.b32 %p2, %r4, %r3;
  @%p2 bra LOOP;
DONE:
  ret;
}
)";

std::array<std::int32_t, 8> counts{1, 2, 3, 4, 5, 6, 7, 8};
bool known{};
unsigned entries{};  // that are known, one bit each

const void* known_at(std::uint64_t address, std::uint64_t bytes) {
  auto begin = reinterpret_cast<std::uint64_t>(counts.data());
  if (!known || address < begin || address + bytes > begin + sizeof counts) return nullptr;
  for (std::uint64_t i = (address - begin) / 4; i < (address + bytes - begin + 3) / 4; ++i)
    if ((entries >> i & 1) == 0) return nullptr;
  return reinterpret_cast<const void*>(address);
}
std::uint64_t extent(std::uint64_t address) { return address > 0xffff ? 1 << 20 : 0; }

class Steering : public ::testing::Test {
 protected:
  void SetUp() override {
    known = true;
    entries = 0xff;
    counts = {1, 2, 3, 4, 5, 6, 7, 8};
    kernel.mangled = "masked";
    kernel.ptx = masked;
    kernel.parameter_sizes = {8, 8, 4};
    kernel.parameter_offsets = {0, 8, 16};
    decoder = prepare(kernel);
  }
  TritonKernel decode() { return std::get<TritonKernel>(decoder->decode(launch).op.work); }
  std::vector<std::byte> key() {
    std::vector<std::byte> bytes(256);
    bytes.resize(decoder->key(launch, bytes.data(), bytes.size()));
    return bytes;
  }

  std::uint64_t table = reinterpret_cast<std::uint64_t>(counts.data()), data = 0x7f0000000000;
  std::uint32_t bound = 16;
  void* arguments[3]{&table, &data, &bound};
  Kernel kernel;
  Launch launch{&kernel, {{8, 1, 1}, {32, 1, 1}}, arguments, &extent, &known_at};
  std::unique_ptr<Decoder> decoder;
};

TEST_F(Steering, KnownCountsAreFollowed) {
  TritonKernel work = decode();
  EXPECT_EQ(work.flops, 2 * 32 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8));
  EXPECT_EQ(work.loops, Loops::counted);
  EXPECT_TRUE(work.exact);
}

TEST_F(Steering, OtherCountsAreAnotherOp) {
  decode();
  auto before = key();
  EXPECT_EQ(key(), before);
  counts[7] = 3;
  EXPECT_NE(key(), before);
  EXPECT_EQ(decode().flops, 2 * 32 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 3));
}

TEST_F(Steering, UnknownCountsAreHalfOfTheBoundAndSaySo) {
  known = false;
  TritonKernel work = decode();
  EXPECT_EQ(work.flops, 2 * 32 * 8 * 16 / 2);
  EXPECT_EQ(work.loops, Loops::assumed);
  EXPECT_FALSE(work.exact);
}

TEST_F(Steering, TheNearestKnownCountStandsForUnknownOnes) {
  entries = 1 << 2 | 1 << 6;
  TritonKernel work = decode();
  EXPECT_EQ(work.flops, 2 * 32 * (5 * 3 + 3 * 7));
  EXPECT_FALSE(work.exact);
  auto before = key();
  counts[0] = 5;  // nobody knows
  EXPECT_EQ(key(), before);
  counts[6] = 3;
  EXPECT_NE(key(), before);
}

// Half of the blocks look at another list, which is not known: the columns of the mask.
TEST_F(Steering, UnknownCountsAreLikeTheKnownOnesOfTheSameLaunch) {
  std::string text(masked);
  const std::string_view place = "  mul.wide.s32 %rd3, %r1, 4;";
  text.replace(
      text.find(place), place.size(),
      "  setp.lt.s32 %p3, %r1, 4;\n  selp.b64 %rd1, %rd1, %rd2, %p3;\n" + std::string(place));
  kernel.ptx = text;
  decoder = prepare(kernel);
  TritonKernel work = decode();
  EXPECT_EQ(work.flops, 2 * 32 * 2 * (1 + 2 + 3 + 4));
  EXPECT_EQ(work.loops, Loops::assumed);
}

TEST_F(Steering, UnknownCountsWithoutABoundSaySo) {
  known = false;
  std::string text(masked);
  text.replace(text.find("min.s32 %r3, %r2, %r9"), 21, "mov.u32 %r3, %r2     ");
  kernel.ptx = text;
  decoder = prepare(kernel);
  TritonKernel work = decode();
  EXPECT_EQ(work.loops, Loops::unknown);
  EXPECT_FALSE(work.exact);
}

// data[indices[thread]], with the index checked: Inductor writes such kernels.
constexpr std::string_view checked = R"(
.visible .entry checked(.param .u64 .ptr .global indices, .param .u64 .ptr .global data,
                        .param .u32 bound) {
  ld.param.u64 %rd1, [indices];
  ld.param.u64 %rd2, [data];
  mov.u32 %r1, %tid.x;
  and.b32 %r1, %r1, 7;
  mul.wide.s32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.b32 %r2, [%rd4];
  setp.lt.u32 %p1, %r2, 100;
  @%p1 bra FINE;
  bra.uni FAIL;
FINE:
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd2, %rd5;
  ld.global.b32 %r5, [%rd6];
  st.global.b32 [%rd6], %r5;
  ret;
FAIL:
  { .param .b64 param0; st.param.b64 [param0], %rd1;
  call.uni __assertfail, (param0); }
  trap;
}
)";

TEST_F(Steering, AssertionsDecideNothing) {
  kernel.mangled = "checked";
  kernel.ptx = checked;
  kernel.demangled.clear();
  decoder = prepare(kernel);
  const TritonKernel before = decode();
  const auto key_before = key();
  EXPECT_GT(before.bytes_written, 0);  // it is taken to hold
  counts = {8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_EQ(key(), key_before);
  known = false;
  EXPECT_EQ(decode().bytes_written, before.bytes_written);
}

// Blocks behind the last one in use, whose number is in memory, end at once.
constexpr std::string_view padded = R"(
.visible .entry padded(.param .u64 .ptr .global used, .param .u64 .ptr .global data,
                       .param .u32 bound) {
  ld.param.u64 %rd1, [used];
  ld.param.u64 %rd2, [data];
  mov.u32 %r1, %ctaid.x;
  ld.global.b32 %r2, [%rd1];
  setp.lt.u32 %p1, %r1, %r2;
  @%p1 bra WORK;
  ret;
WORK:
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd2, %rd5;
  ld.global.b32 %r5, [%rd6];
  st.global.b32 [%rd6], %r5;
  ret;
}
)";

TEST_F(Steering, WhereNobodyKnowsTheGridSuggestsWork) {
  kernel.mangled = "padded";
  kernel.ptx = padded;
  kernel.demangled.clear();
  decoder = prepare(kernel);
  known = false;
  const auto all = decode().bytes_written;
  EXPECT_EQ(all, 8 * 4);
  known = true;
  counts[0] = 2;
  EXPECT_LT(decode().bytes_written, all);
}

}  // namespace
}  // namespace maya::decode
