// Floating-point numbers, and numbers that nobody computed, in kernels that are run on known
// values.
#include "decode/testing/small_launch.h"

namespace maya::decode::ptx {
namespace {

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

// A drafted token against the one that the model chose, which nobody computed.
TEST(PtxMachine, UnknownNumbersCanBeTakenToDiffer) {
  SmallLaunch run(std::string(own_place) + R"(
    mov.u32 %r6, 0;
    LOOP:
    ld.global.u32 %r7, [%rd1];
    ld.global.u32 %r8, [%rd2];
    setp.gt.s32 %p4, %r8, -1;
    @!%p4 bra OUT;
    setp.ne.s32 %p2, %r7, %r8;
    @%p2 bra DONE;
    add.s32 %r6, %r6, 1;
    setp.lt.u32 %p3, %r6, 4;
    @%p3 bra LOOP;
    DONE:
    st.global.u32 [%rd3], %r6;
    OUT:
  )");
  run.tensor<std::int32_t>(0, {7}).threads(1, 1);
  EXPECT_FALSE(run.go());
  EXPECT_TRUE(run.go_where_unknown_numbers_differ());
  EXPECT_EQ(run.wrote<std::int32_t>(2, 0), 0);
}

}  // namespace
}  // namespace maya::decode::ptx
