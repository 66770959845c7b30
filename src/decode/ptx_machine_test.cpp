// Small kernels run on known values: exact, or unknown.
#include "decode/testing/small_launch.h"

namespace maya::decode::ptx {
namespace {

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
