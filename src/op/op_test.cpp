#include "maya/op.h"

#include <gtest/gtest.h>

#include "op/text.h"

namespace maya {
namespace {

TEST(DType, NamesBitsAndAliases) {
  EXPECT_EQ(bits(DType::f4), 4);
  EXPECT_EQ(bytes(DType::bf16), 2);
  EXPECT_EQ(bits(DType::unknown), 0);
  for (int i = 0; i <= static_cast<int>(DType::c128); ++i) {
    auto type = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(type)), type) << name(type);
  }
  EXPECT_EQ(parse_dtype("torch.bfloat16"), DType::bf16);
  EXPECT_EQ(parse_dtype("HALF"), DType::f16);
  EXPECT_EQ(parse_dtype("fp8"), DType::f8e4m3);
  EXPECT_FALSE(parse_dtype("float17"));
}

TEST(Enums, EveryNameParsesToItsValue) {
  EXPECT_EQ(enum_name(CollectiveKind::barrier), "barrier");
  EXPECT_EQ(parse_enum<CollectiveKind>("reduce_scatter"), CollectiveKind::reduce_scatter);
  EXPECT_EQ(parse_enum<Epilogue>("other"), Epilogue::other);
  EXPECT_EQ(parse_enum<NormKind>("l2"), NormKind::l2);
  EXPECT_EQ(parse_enum<OptimizerKind>("lion"), OptimizerKind::lion);
  EXPECT_FALSE(parse_enum<Direction>("sideways"));
}

TEST(Kinds, NameAndIndexAgree) {
  for (std::size_t i = 0; i < std::variant_size_v<Work>; ++i) {
    auto work = work_of_kind(kind_name(i));
    ASSERT_TRUE(work) << kind_name(i);
    EXPECT_EQ(work->index(), i);
  }
  EXPECT_EQ(kind_name(Work{Gemm{}}), "gemm");
  EXPECT_EQ(kind_name(Work{TritonKernel{}}), "triton_kernel");
  EXPECT_FALSE(work_of_kind("matmul"));
}

TEST(Work, GemmCountsEachOperandOnce) {
  Gemm g{.m = 128, .n = 64, .k = 32, .batch = 2, .a = DType::f16, .b = DType::f16, .d = DType::f32};
  EXPECT_EQ(flops(g), 2.0 * 128 * 64 * 32 * 2);
  EXPECT_EQ(bytes_read(g), 2 * (128 * 32 * 2 + 32 * 64 * 2));
  EXPECT_EQ(bytes_written(g), 2 * 128 * 64 * 4);
  g.accumulate = true;
  EXPECT_EQ(bytes_read(g), 2 * (128 * 32 * 2 + 32 * 64 * 2 + 128 * 64 * 4));
  EXPECT_EQ(compute_type(g), DType::f32);
}

TEST(Work, GroupedGemmReadsOneWeightPerGroup) {
  Gemm g{.m = 1024, .n = 64, .k = 32, .a = DType::f16, .b = DType::f16, .d = DType::f16};
  g.groups = 8;
  EXPECT_EQ(flops(g), 2.0 * 1024 * 64 * 32);
  EXPECT_EQ(bytes_read(g), 1024 * 32 * 2 + 8 * 32 * 64 * 2);
}

TEST(Work, ConvolutionOfResNetStem) {
  Convolution c{.n = 32,
                .c = 3,
                .h = 224,
                .w = 224,
                .k = 64,
                .kh = 7,
                .kw = 7,
                .stride_h = 2,
                .stride_w = 2,
                .pad_h = 3,
                .pad_w = 3};
  EXPECT_EQ(c.out_h(), 112);
  EXPECT_EQ(flops(c), 2.0 * 32 * 64 * 112 * 112 * 3 * 49);
  c.direction = Direction::weight_gradient;
  EXPECT_EQ(bytes_written(c), 64 * 3 * 49 * 4);
}

TEST(Work, CausalAttentionHasAboutHalfTheFlops) {
  Attention a{.batch = 1, .heads = 8, .kv_heads = 8, .seq_q = 1024, .seq_k = 1024, .head_dim = 64};
  double full = flops(a);
  EXPECT_EQ(full, 4.0 * 8 * 1024 * 1024 * 64);
  a.causal = true;
  EXPECT_NEAR(flops(a) / full, 0.5, 0.001);
  a.direction = Direction::backward;
  EXPECT_NEAR(flops(a) / full, 1.25, 0.002);
  a.direction = Direction::forward;
  a.seq_q = 1;  // decoding: one query sees every key
  EXPECT_EQ(flops(a), 4.0 * 8 * 1024 * 64);
}

TEST(Work, CopiesCountTheirDeviceSideOnly) {
  EXPECT_EQ(bytes_moved(Copy{.bytes = 10, .direction = CopyDirection::device}), 20);
  EXPECT_EQ(bytes_moved(Copy{.bytes = 10, .direction = CopyDirection::host_to_device}), 10);
  EXPECT_EQ(bytes_moved(Fill{.bytes = 7}), 7);
}

TEST(Text, EveryKindParsesToTheSameWork) {
  for (std::size_t i = 0; i < std::variant_size_v<Work>; ++i) {
    Work work = *work_of_kind(kind_name(i));
    auto back = parse_work(to_text(work, true));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_text(*back, true), to_text(work, true));
  }
  auto gemm =
      parse_work("gemm m=4096 n=1024 k=512 a=bf16 b=bf16 d=bf16 compute=bf16 epilogue=bias");
  ASSERT_TRUE(gemm);
  EXPECT_EQ(flops(*gemm), 2.0 * 4096 * 1024 * 512);
  EXPECT_EQ(to_text(*gemm),
            "gemm m=4096 n=1024 k=512 a=bf16 b=bf16 d=bf16 compute=bf16 epilogue=bias");
}

TEST(Text, ErrorsNameTheWord) {
  auto message = [](std::string_view text) {
    auto r = parse_work(text);
    return r ? std::string("accepted") : r.error().message;
  };
  EXPECT_NE(message("gem m=1").find("unknown kind of op 'gem'"), std::string::npos);
  EXPECT_NE(message("gemm mm=1").find("no field 'mm'; it has m, n, k"), std::string::npos);
  EXPECT_NE(message("gemm m=1x").find("m=1x"), std::string::npos);
  EXPECT_NE(message("gemm m=-3").find("not negative"), std::string::npos);
  EXPECT_NE(message("gemm m").find("key=value"), std::string::npos);
  EXPECT_NE(message("").find("unknown kind"), std::string::npos);
}

}  // namespace
}  // namespace maya
