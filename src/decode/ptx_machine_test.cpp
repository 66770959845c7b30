// Small kernels run on known values: exact, or unknown.
#include "decode/ptx_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>

namespace maya::decode::ptx {
namespace {

// Device memory of which some bytes are known.
std::map<std::uint64_t, std::vector<std::byte>> known_memory;
constexpr std::uint64_t base = 0x7f0000000000, each = std::uint64_t{1} << 20;

std::uint64_t extent(std::uint64_t address) {
  return address >= base && address < base + 16 * each ? each - (address - base) % each : 0;
}

const void* known(std::uint64_t address, std::uint64_t bytes) {
  auto it = known_memory.upper_bound(address);
  if (it == known_memory.begin()) return nullptr;
  --it;
  const std::uint64_t offset = address - it->first;
  if (offset + bytes > it->second.size()) return nullptr;
  return it->second.data() + offset;
}

bool possible(std::uint64_t address, std::uint64_t bytes) {
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

TEST(PtxMachine, GathersByKnownIndices) {
  SmallLaunch run(std::string(own_place) + R"(
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    ld.global.s32 %r6, [%rd11];
    mul.wide.s32 %rd20, %r6, 4;
    add.s64 %rd21, %rd2, %rd20;
    ld.global.u32 %r7, [%rd21];
    st.global.u32 [%rd13], %r7;
    DONE:
  )");
  run.tensor<std::int32_t>(0, {2, 0, 1}).tensor<std::int32_t>(1, {10, -20, 30}).number(3);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::int32_t>(2, 0), 30);
  EXPECT_EQ(run.wrote<std::int32_t>(2, 1), 10);
  EXPECT_EQ(run.wrote<std::int32_t>(2, 2), -20);
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 3));
  EXPECT_TRUE(run.can_know().stores);
  EXPECT_FALSE(run.can_know().own_values);
}

TEST(PtxMachine, ThreadsThatStoreNothingAreLeftAtThat) {
  std::string work;
  for (int i = 0; i < 40; ++i) work += "mad.lo.s32 %r6, %r6, 3, %r5;\n";
  SmallLaunch run(std::string(own_place) + R"(
    setp.lt.s32 %p1, %r5, %r1;
    mov.u32 %r6, 1;
  )" + work + "@%p1 st.global.u32 [%rd13], %r6;");
  run.number(2).threads(2, 128);
  ASSERT_TRUE(run.go());
  EXPECT_TRUE(run.wrote<std::int32_t>(2, 1));
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 2));
  EXPECT_LT(3 * run.scouted_steps(), run.effects().steps);
}

// A division, as Triton writes it: two ways, one of them behind the loop, which decide nothing.
TEST(PtxMachine, BranchesThatDecideNothingKeepNoThreadFromBeingLeftOut) {
  std::string work;
  for (int i = 0; i < 40; ++i) work += "mad.lo.s32 %r6, %r6, 3, %r5;\n";
  SmallLaunch run(std::string(own_place) + R"(
    setp.lt.s32 %p1, %r5, %r1;
    mov.u32 %r6, 1;
    bra.uni MAIN;
    FAR:
    add.s32 %r6, %r6, 7;
    JOIN:
  )" + work + R"(
    @%p1 st.global.u32 [%rd13], %r6;
    bra.uni DONE;
    MAIN:
    and.b32 %r7, %r5, 1;
    setp.eq.s32 %p2, %r7, 0;
    @%p2 bra FAR;
    add.s32 %r6, %r6, 3;
    bra.uni JOIN;
    DONE:
  )");
  run.number(2).threads(2, 128);
  ASSERT_TRUE(run.go());
  std::int32_t expected[] = {8, 4};
  for (int thread = 0; thread < 2; ++thread) {
    for (int i = 0; i < 40; ++i) expected[thread] = expected[thread] * 3 + thread;
    EXPECT_EQ(run.wrote<std::int32_t>(2, static_cast<std::uint64_t>(thread)), expected[thread]);
  }
  EXPECT_LT(3 * run.scouted_steps(), run.effects().steps);
}

// Which threads store follows from a value in memory; it is remembered only as long as that stays.
TEST(PtxMachine, SilentThreadsAreRememberedByTheValuesTheyFollowFrom) {
  std::string work;
  for (int i = 0; i < 40; ++i) work += "mad.lo.s32 %r6, %r6, 3, %r5;\n";
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r7, [%rd1];
    setp.lt.s32 %p1, %r5, %r7;
    mov.u32 %r6, 1;
  )" + work + "@%p1 st.global.u32 [%rd13], %r6;");
  run.tensor<std::int32_t>(0, {2}).threads(1, 128);
  ASSERT_TRUE(run.go());
  EXPECT_LT(3 * run.repeated_steps(), run.scouted_steps());
  EXPECT_TRUE(run.wrote<std::int32_t>(2, 1));
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 2));
  ASSERT_TRUE(run.again<std::int32_t>(0, {4}));
  EXPECT_TRUE(run.wrote<std::int32_t>(2, 3));
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 4));
}

// Here the two ways lead to another store.
TEST(PtxMachine, BranchesThatLeadToAStoreDecide) {
  std::string work;
  for (int i = 0; i < 40; ++i) work += "mad.lo.s32 %r6, %r6, 3, %r5;\n";
  SmallLaunch run(std::string(own_place) + "mov.u32 %r6, 1;\n" + work + R"(
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    st.global.u32 [%rd13], %r6;
    DONE:
  )");
  run.number(2).threads(2, 128);
  ASSERT_TRUE(run.go());
  EXPECT_TRUE(run.wrote<std::int32_t>(2, 1));
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 2));
  EXPECT_LT(3 * run.scouted_steps(), run.effects().steps);
}

TEST(PtxMachine, UnknownInputsGiveUnknownOutputsAndKnownOnesBesideThem) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r6, [%rd11];
    add.s32 %r6, %r6, 1;
    st.global.u32 [%rd12], %r6;
    st.global.u32 [%rd13], %r5;
  )");
  run.tensor<std::int32_t>(0, {5, 6}).threads(1, 4);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::int32_t>(1, 0), 6);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 1), 7);
  EXPECT_FALSE(run.wrote<std::int32_t>(1, 2));
  EXPECT_EQ(run.wrote<std::int32_t>(2, 3), 3);
  EXPECT_TRUE(run.can_know().own_values);
  bool forgotten = false;
  for (const auto& range : run.effects().ranges)
    forgotten |= !range.known && range.address == base + each + 8 && range.bytes == 8;
  EXPECT_TRUE(forgotten);
}

TEST(PtxMachine, PrefixSumOverAWarpByShuffles) {
  std::string body = std::string(own_place) + "ld.global.u32 %r6, [%rd11];\n";
  for (int step : {1, 2, 4, 8, 16}) {
    std::string n = std::to_string(step);
    body += "shfl.sync.up.b32 %r7|%p1, %r6, " + n + ", 0, -1;\n@%p1 add.s32 %r6, %r6, %r7;\n";
  }
  SmallLaunch run(body + "st.global.u32 [%rd12], %r6;");
  std::vector<std::int32_t> ones(32);
  for (int i = 0; i < 32; ++i) ones[static_cast<std::size_t>(i)] = i + 1;
  run.tensor(0, ones);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::int32_t>(1, 0), 1);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 9), 55);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 31), 528);
}

TEST(PtxMachine, ExchangesThroughSharedMemoryMeetAtTheBarrier) {
  // Each thread reads what the last one wrote: the threads before it must wait.
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r6, [%rd11];
    mov.b32 %r8, smem; shl.b32 %r9, %r4, 2; add.s32 %r10, %r8, %r9;
    st.shared.b32 [%r10], %r6;
    bar.sync 0;
    sub.s32 %r11, 63, %r4; shl.b32 %r11, %r11, 2; add.s32 %r12, %r8, %r11;
    ld.shared.b32 %r13, [%r12];
    ld.shared.b32 %r14, [smem+4];
    add.s32 %r13, %r13, %r14;
    st.global.b32 [%rd12], %r13;
  )");
  std::vector<std::int32_t> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<std::size_t>(i)] = 100 * i;
  run.tensor(0, values).threads(1, 64);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::int32_t>(1, 0), 6400);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 63), 100);
}

TEST(PtxMachine, AtomicCountsOverBlocksAndAReductionOverAWarp) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r6, [%rd11];
    redux.sync.max.s32 %r7, %r6, 0xffffffff;
    setp.ne.s32 %p1, %r4, 0;
    @%p1 ret;
    red.global.add.u32 [%rd2], %r7;
    atom.global.max.s32 %r8, [%rd2+4], %r7;
  )");
  std::vector<std::int32_t> values(128);
  for (int i = 0; i < 128; ++i) values[static_cast<std::size_t>(i)] = i;
  run.tensor(0, values).tensor<std::int32_t>(1, {1000, -5}).threads(4, 32);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::int32_t>(1, 0), 1000 + 31 + 63 + 95 + 127);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 1), 127);
}

TEST(PtxMachine, WhatAnotherBlockWroteIsUnknown) {
  // Block 1 reads what block 0 stores: on a GPU nobody knows which comes first.
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r6, [%rd2];
    st.global.u32 [%rd13], %r6;
    st.global.u32 [%rd2], 7;
  )");
  run.tensor<std::int32_t>(1, {3}).threads(2, 1);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::int32_t>(2, 0), 3);
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 1));
}

// A scan: each block waits for the one in front of it and adds its own number.
TEST(PtxMachine, BlocksThatWaitForOthersSeeWhatTheyWrote) {
  SmallLaunch run(R"(
    mov.u32 %r2, %ctaid.x;
    mul.wide.s32 %rd10, %r2, 4;
    add.s64 %rd11, %rd1, %rd10; add.s64 %rd12, %rd2, %rd10; add.s64 %rd13, %rd3, %rd10;
    ld.global.b32 %r3, [%rd11];
    setp.eq.s32 %p1, %r2, 0;
    @%p1 bra FIRST;
  WAIT:
    ld.global.gpu.acquire.b32 %r4, [%rd13 + -4];
    setp.eq.s32 %p2, %r4, 0;
    @%p2 bra WAIT;
    ld.global.b32 %r5, [%rd12 + -4];
    add.s32 %r3, %r3, %r5;
  FIRST:
    st.global.b32 [%rd12], %r3;
    atom.global.gpu.release.exch.b32 %r6, [%rd13], 1;)");
  std::vector<std::int32_t> numbers(20, 3);
  run.tensor<std::int32_t>(0, numbers).tensor<std::int32_t>(2, std::vector<std::int32_t>(20));
  ASSERT_TRUE(run.threads(20, 1).go());
  EXPECT_EQ(run.wrote<std::int32_t>(1, 0), 3);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 19), 60);
}

TEST(PtxMachine, OfALargeLaunchSomeBlocksAreRunAndTheOthersAreUnknown) {
  SmallLaunch run(std::string(own_place) + R"(
    mov.u32 %r6, 0;
  LOOP:
    add.s32 %r6, %r6, 1;
    setp.lt.s32 %p1, %r6, 3000;
    @%p1 bra LOOP;
    st.global.b32 [%rd12], %r5;)");
  ASSERT_TRUE(run.threads(4000, 32).go());
  EXPECT_EQ(run.wrote<std::int32_t>(1, 0), 0);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 4000 * 32 - 1), 4000 * 32 - 1);
  std::size_t known = 0;
  for (std::uint64_t block = 0; block < 4000; ++block)
    known += run.wrote<std::int32_t>(1, block * 32).has_value();
  EXPECT_GT(known, 100u);
  EXPECT_LT(known, 400u);
  EXPECT_EQ(std::count(run.effects().behind.begin(), run.effects().behind.end(), base + each), 1);
}

TEST(PtxMachine, BranchesOnUnknownValuesHaveNoResult) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r6, [%rd11];
    setp.eq.s32 %p1, %r6, 0;
    @%p1 bra DONE;
    st.global.u32 [%rd12], %r5;
    DONE:
  )");
  EXPECT_FALSE(run.go());
}

TEST(PtxMachine, StoresUnderAnUnknownPredicateForgetWhatWasThere) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r6, [%rd11];
    setp.eq.s32 %p1, %r6, 0;
    @%p1 st.global.u32 [%rd12], 1;
  )");
  run.threads(1, 1);
  ASSERT_TRUE(run.go());
  EXPECT_FALSE(run.wrote<std::int32_t>(1, 0));
  ASSERT_EQ(run.effects().ranges.size(), 1u);
  EXPECT_FALSE(run.effects().ranges[0].known);
}

TEST(PtxMachine, StoresAtUnknownPlacesBlurTheTensorTheyWriteTo) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.s32 %r6, [%rd11];
    mul.wide.s32 %rd20, %r6, 4;
    add.s64 %rd21, %rd2, %rd20;
    st.global.u32 [%rd21], 1;
    ld.global.u32 %r7, [%rd2];
    st.global.u32 [%rd13], %r7;
    st.global.u32 [%rd4], 9;
  )");
  run.tensor<std::int32_t>(1, {4, 5, 6}).threads(1, 1);
  ASSERT_TRUE(run.go());
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 0));
  EXPECT_EQ(run.wrote<std::int32_t>(3, 0), 9);
  ASSERT_EQ(run.effects().behind.size(), 1u);
  EXPECT_EQ(run.effects().behind[0], base + each);
}

TEST(PtxMachine, FloatsPassThroughAndWhatIsNotExactIsUnknown) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.b32 %r6, [%rd11];
    ex2.approx.f32 %r7, %r6;
    st.global.b32 [%rd12], %r6;
    st.global.b32 [%rd13], %r7;
    mov.b32 %r8, 0f3F800000;
    st.global.b32 [%rd4], %r8;
  )");
  run.tensor<float>(0, {2.5f}).threads(1, 1);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<float>(1, 0), 2.5f);
  EXPECT_FALSE(run.wrote<float>(2, 0));
  EXPECT_EQ(run.wrote<float>(3, 0), 1.0f);
}

TEST(PtxMachine, FloatsThatAreKnownAreComputed) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.b32 %r6, [%rd1]; ld.global.b32 %r7, [%rd1+4];
    mul.rn.f32 %r8, %r6, %r7; st.global.b32 [%rd2], %r8;
    fma.rn.f32 %r8, %r6, %r7, 0f3F800000; st.global.b32 [%rd2+4], %r8;
    max.f32 %r8, %r6, %r7; st.global.b32 [%rd2+8], %r8;
    mov.u32 %r9, 0xfffffff9; cvt.rn.f32.s32 %r8, %r9; st.global.b32 [%rd2+12], %r8;
    cvt.rzi.s32.f32 %r8, %r7; st.global.b32 [%rd3], %r8;
    setp.lt.f32 %p2, %r7, %r6; selp.b32 %r8, 1, 0, %p2; st.global.b32 [%rd3+4], %r8;
    setp.neu.f32 %p2, %r6, 0f00000000; selp.b32 %r8, 1, 0, %p2; st.global.b32 [%rd3+8], %r8;
    add.ftz.f32 %r8, %r6, %r7; st.global.b32 [%rd4], %r8;
    add.f32 %r8, %r6, %r7; sub.f32 %r8, %r8, %r8; div.rn.f32 %r8, %r8, %r8;
    st.global.b32 [%rd4+4], %r8;
    ld.global.b32 %r9, [%rd3+64]; add.f32 %r8, %r6, %r9; st.global.b32 [%rd4+8], %r8;
  )");
  run.tensor<float>(0, {2.5f, -3.75f}).threads(1, 1);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<float>(1, 0), -9.375f);
  EXPECT_EQ(run.wrote<float>(1, 1), -8.375f);
  EXPECT_EQ(run.wrote<float>(1, 2), 2.5f);
  EXPECT_EQ(run.wrote<float>(1, 3), -7.0f);
  EXPECT_EQ(run.wrote<std::int32_t>(2, 0), -3);
  EXPECT_EQ(run.wrote<std::int32_t>(2, 1), 1);
  EXPECT_EQ(run.wrote<std::int32_t>(2, 2), 1);
  EXPECT_FALSE(run.wrote<float>(3, 0));  // denormal numbers become zero
  EXPECT_FALSE(run.wrote<float>(3, 1));  // 0 / 0
  EXPECT_FALSE(run.wrote<float>(3, 2));
}

// Speculative decoding: as many drafts are accepted as random numbers below the rates say, and the
// loop ends at the first that is not (vLLM's synthetic acceptance).
TEST(PtxMachine, AcceptanceRatesSteerALoop) {
  SmallLaunch run(std::string(own_place) + R"(
    mov.u32 %r6, 0;
    LOOP:
    mul.wide.u32 %rd20, %r6, 4;
    add.s64 %rd21, %rd1, %rd20;
    ld.global.b32 %r7, [%rd21];
    cvt.rn.f32.s32 %r8, %r7;
    mul.f32 %r8, %r8, 0f30000000;
    setp.geu.f32 %p2, %r8, 0f3F000000;
    @%p2 bra DONE;
    add.s32 %r6, %r6, 1;
    setp.lt.u32 %p3, %r6, 4;
    @%p3 bra LOOP;
    DONE:
    st.global.u32 [%rd2], %r6;
  )");
  run.tensor<std::int32_t>(0, {1 << 28, 3 << 28, 1 << 30, 0}).threads(1, 1);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::int32_t>(1, 0), 2);  // 0.125, 0.375, then 0.5
}

TEST(PtxMachine, ModifiersThatChangeArithmeticMakeItUnknown) {
  SmallLaunch run(std::string(own_place) + R"(
    mov.u32 %r6, 0x7fffffff;
    add.sat.s32 %r7, %r6, 1;
    st.global.u32 [%rd12], %r7;
    mul24.lo.s32 %r8, %r6, %r6;
    st.global.u32 [%rd13], %r8;
  )");
  run.threads(1, 1);
  ASSERT_TRUE(run.go());
  EXPECT_FALSE(run.wrote<std::int32_t>(1, 0));
  EXPECT_FALSE(run.wrote<std::int32_t>(2, 0));
}

TEST(PtxMachine, BytesAndShifts) {
  SmallLaunch run(std::string(own_place) + R"(
    ld.global.u32 %r6, [%rd1]; ld.global.u32 %r7, [%rd1+4];
    prmt.b32 %r8, %r6, %r7, 0x5410; st.global.b32 [%rd2], %r8;
    shf.l.wrap.b32 %r9, %r6, %r7, 8; st.global.b32 [%rd2+4], %r9;
    shf.r.clamp.b32 %r10, %r6, %r7, 40; st.global.b32 [%rd2+8], %r10;
    ld.global.s8 %r11, [%rd1+3]; st.global.b32 [%rd2+12], %r11;
    bfe.s32 %r12, %r7, 28, 8; st.global.b32 [%rd2+16], %r12;
    cvt.s8.s32 %r13, %r7; st.global.b32 [%rd2+20], %r13;
  )");
  run.tensor<std::uint32_t>(0, {0x81223344u, 0xa5b6c7d8u}).threads(1, 1);
  ASSERT_TRUE(run.go());
  EXPECT_EQ(run.wrote<std::uint32_t>(1, 0), 0xc7d83344u);
  EXPECT_EQ(run.wrote<std::uint32_t>(1, 1), 0xb6c7d881u);
  EXPECT_EQ(run.wrote<std::uint32_t>(1, 2), 0xa5b6c7d8u);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 3), -127);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 4), -6);
  EXPECT_EQ(run.wrote<std::int32_t>(1, 5), -40);
}

TEST(PtxMachine, EndsWithoutAResultWhenItWouldTakeTooLong) {
  EXPECT_FALSE(SmallLaunch("LOOP: bra LOOP;").go());
  EXPECT_FALSE(SmallLaunch("mov.u64 %rd9, 64; st.global.u32 [%rd9], 1;").go());
}

TEST(PtxMachine, ReadsWhereNothingIsKnownAreNotedByArea) {
  SmallLaunch launch(R"(
    ld.global.u32 %r2, [%rd1];
    ld.global.u32 %r3, [%rd3];
    st.global.u32 [%rd2], %r2;)");
  launch.tensor<std::uint32_t>(0, std::vector<std::uint32_t>(16, 5)).threads(1, 1);
  ASSERT_TRUE(launch.go());
  EXPECT_EQ(launch.wrote<std::uint32_t>(1, 0), 5u);
  EXPECT_EQ(launch.effects().lines_read, (std::vector{base / Effects::line_bytes}));
  EXPECT_EQ(launch.effects().unknown_areas, (std::vector{(base + 2 * each) / Effects::area_bytes}));
  EXPECT_TRUE(launch.effects().repeatable);
}

}  // namespace
}  // namespace maya::decode::ptx
