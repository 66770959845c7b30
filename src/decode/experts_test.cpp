// Products of mixtures of experts, and attention in Triton: kernels whose work lies in memory.
#include "decode/experts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "decode/triton_source.h"

namespace maya::decode {
namespace {

// Device memory of the tests: numbers that are known, and how far allocations reach.
std::map<std::uint64_t, std::vector<std::int32_t>> memory;
std::map<std::uint64_t, std::uint64_t> allocations;
const void* known(std::uint64_t address, std::uint64_t bytes) {
  const auto at = memory.find(address);
  return at != memory.end() && at->second.size() * 4 >= bytes ? at->second.data() : nullptr;
}
std::uint64_t extent(std::uint64_t address) {
  const auto at = allocations.find(address);
  return at == allocations.end() ? 0 : at->second;
}

struct Given {
  std::string name, type;  // as TTIR writes it
  std::uint64_t value{};
};

// A launch of a Triton kernel: its TTIR is made of the parameters and `body`.
class TritonLaunch {
 public:
  TritonLaunch(const std::string& name, const std::vector<Given>& given, const std::string& body,
               std::array<std::uint32_t, 3> grid) {
    ttir_ = "module {\n  tt.func public @" + name + "(";
    for (const Given& g : given) {
      const bool pointer = g.type.starts_with("!tt.ptr");
      if (&g != given.data()) ttir_ += ", ";
      ttir_ += "%" + g.name + ": " + g.type + " {tt.divisibility = 16 : i32} loc(\"" + g.name +
               "\"(#loc))";
      kernel_.parameter_sizes.push_back(pointer || g.type == "i64" ? 8 : 4);
      kernel_.parameter_offsets.push_back(static_cast<std::uint16_t>(8 * values_.size()));
      values_.push_back(g.value);
    }
    kernel_.parameter_sizes.insert(kernel_.parameter_sizes.end(), 2, 8);  // Triton's own memory
    values_.insert(values_.end(), 2, 0);
    ttir_ += ") attributes {noinline = false} {\n" + body + "    tt.return loc(#loc)\n  }\n}\n";
    kernel_.mangled = name, kernel_.ttir = ttir_;
    for (std::uint64_t& value : values_) arguments_.push_back(&value);
    launch_ = {&kernel_, {grid, {128, 1, 1}}, arguments_.data(), extent, known};
  }
  Decoded decode() { return prepare(kernel_)->decode(launch_); }

 private:
  std::string ttir_;
  Kernel kernel_;
  std::vector<std::uint64_t> values_;
  std::vector<void*> arguments_;
  Launch launch_;
};

constexpr std::uint64_t tokens_at = 0x7f0000000000, weights_at = 0x7f1000000000,
                        ids_at = 0x7f2000000000, experts_at = 0x7f3000000000,
                        padded_at = 0x7f4000000000, out_at = 0x7f5000000000;

class Experts : public testing::Test {
 protected:
  void SetUp() override {
    memory.clear(), allocations.clear();
    note_router({128, 8});
  }
};

std::vector<Given> fused(std::uint64_t n, std::uint64_t k, std::uint64_t rows,
                         const std::string& weights = "bf16") {
  return {{"a_ptr", "!tt.ptr<bf16>", tokens_at},
          {"b_ptr", "!tt.ptr<" + weights + ">", weights_at},
          {"c_ptr", "!tt.ptr<bf16>", out_at},
          {"sorted_token_ids_ptr", "!tt.ptr<i32>", ids_at},
          {"expert_ids_ptr", "!tt.ptr<i32>", experts_at},
          {"num_tokens_post_padded_ptr", "!tt.ptr<i32>", padded_at},
          {"N", "i32", n},
          {"K", "i32", k},
          {"EM", "i32", rows * 16},
          {"num_valid_tokens", "i32", rows},
          {"stride_am", "i32", k},
          {"stride_be", "i32", n * k},
          {"stride_bn", "i32", k}};
}
const std::string divides =
    "    %cst_5 = arith.constant dense<8> : tensor<64x1xi64> loc(#loc1)\n"
    "    %x = tt.splat %sorted_token_ids_ptr : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>> loc(#loc)\n"
    "    %a_ptrs_50 = arith.divsi %a_ptrs, %cst_5 : tensor<64x1xi64> loc(#loc2)\n";
// Where the scale of a column lies.
const std::string divides_columns =
    "    %cst_6 = arith.constant dense<128> : tensor<128xi64> loc(#loc1)\n"
    "    %offs_bsn = arith.divsi %offs_bn_47, %cst_6 : tensor<128xi64> loc(#loc3)\n";

// Two tokens and eight of 128 experts each: the weights of those that are hit are read.
TEST_F(Experts, OfVllmAreAProductOverThoseThatAreHit) {
  allocations[weights_at] = std::uint64_t{128} * 1536 * 2048 * 2 + 4096;
  const Decoded d =
      TritonLaunch("fused_moe_kernel", fused(1536, 2048, 16), divides, {192, 1, 1}).decode();
  ASSERT_TRUE(d.recognised);
  const auto work = std::get<Gemm>(d.op.work);
  EXPECT_EQ(work.m, 16);
  EXPECT_EQ(work.n, 1536);
  EXPECT_EQ(work.k, 2048);
  EXPECT_EQ(work.experts, 128);
  EXPECT_EQ(work.top, 8);
  EXPECT_EQ(work.groups, 16);  // 15.5 on average
  EXPECT_EQ(work.part, ExpertsPart::first);
  EXPECT_FALSE(work.dealt);
  EXPECT_EQ(work.b, DType::bf16);
  // The product back divides nothing.
  allocations[weights_at] = std::uint64_t{128} * 768 * 2048 * 2;
  const Decoded back =
      TritonLaunch("fused_moe_kernel", fused(2048, 768, 16), "", {192, 1, 1}).decode();
  EXPECT_EQ(std::get<Gemm>(back.op.work).part, ExpertsPart::second);
  EXPECT_EQ(std::get<Gemm>(back.op.work).top, 8);
}

TEST_F(Experts, ListsThatAreKnownSayWhichAreHit) {
  allocations[weights_at] = std::uint64_t{128} * 1536 * 2048 * 2;
  memory[padded_at] = {3 * 64};
  memory[experts_at] = {5, 5, 9};
  const Decoded d =
      TritonLaunch("fused_moe_kernel", fused(1536, 2048, 16), divides, {192, 1, 1}).decode();
  EXPECT_EQ(std::get<Gemm>(d.op.work).groups, 2);
  EXPECT_TRUE(std::get<Gemm>(d.op.work).dealt);
}

TEST_F(Experts, DividedOverRanksComputeTheirShareOfTheRows) {
  allocations[weights_at] = std::uint64_t{32} * 1536 * 2048 * 2;  // of 128
  const Decoded d =
      TritonLaunch("fused_moe_kernel", fused(1536, 2048, 4096), divides, {192, 1, 1}).decode();
  const auto work = std::get<Gemm>(d.op.work);
  EXPECT_EQ(work.experts, 32);
  EXPECT_EQ(work.ranks, 4);
  EXPECT_EQ(work.m, 1024);
  EXPECT_EQ(work.groups, 32);
}

TEST_F(Experts, ScalesOfFp8InBlocksAreToldByTheirStride) {
  auto given = fused(1536, 2048, 16, "f8E4M3FN");
  given[0].type = "!tt.ptr<f8E4M3FN>";
  given.insert(given.begin() + 3, {"b_scale_ptr", "!tt.ptr<f32>", 0x7f6000000000});
  given.push_back({"stride_bse", "i32", 12 * 16});
  given.push_back({"stride_bsn", "i32", 16});
  allocations[weights_at] = std::uint64_t{128} * 1536 * 2048;
  const auto work =
      std::get<Gemm>(TritonLaunch("fused_moe_kernel", given, divides + divides_columns, {192, 1, 1})
                         .decode()
                         .op.work);
  const auto back = std::get<Gemm>(
      TritonLaunch("fused_moe_kernel", given, divides_columns, {192, 1, 1}).decode().op.work);
  EXPECT_EQ(back.part, ExpertsPart::second);
  EXPECT_EQ(back.top, 8);
  EXPECT_EQ(work.scale_block, 128);
  EXPECT_EQ(work.b, DType::f8e4m3);
  EXPECT_EQ(work.d, DType::bf16);
  EXPECT_EQ(work.experts, 128);
}

// Two weights in a byte; N and K are constants of the code.
TEST_F(Experts, OfFourBitsHaveTheirSizesInTheStrides) {
  auto given = fused(1536, 1024, 16, "i8");
  std::erase_if(given, [](const Given& g) { return g.name == "N" || g.name == "K"; });
  for (Given& g : given)
    if (g.name == "stride_am") g.value = 2048;
  allocations[weights_at] = std::uint64_t{128} * 1536 * 1024;
  const Decoded d = TritonLaunch("fused_moe_kernel_gptq_awq", given, divides, {192, 1, 1}).decode();
  ASSERT_TRUE(d.recognised);
  const auto work = std::get<Gemm>(d.op.work);
  EXPECT_EQ(work.n, 1536);
  EXPECT_EQ(work.k, 2048);
  EXPECT_EQ(work.a, DType::bf16);
  EXPECT_EQ(work.b, DType::f4);
}

TEST_F(Experts, OfSizesThatDoNotFitAreNotRecognised) {
  allocations[weights_at] = 1 << 30;
  auto given = fused(1536, 2048, 16);
  for (Given& g : given)
    if (g.name == "stride_be") g.value = 7;
  EXPECT_FALSE(TritonLaunch("fused_moe_kernel", given, divides, {1, 1, 1}).decode().recognised);
  allocations.clear();  // nobody knows how many there are
  EXPECT_FALSE(TritonLaunch("fused_moe_kernel", fused(1536, 2048, 16), divides, {1, 1, 1})
                   .decode()
                   .recognised);
}

// gpt-oss: weights of four bits with scales by 32, four of 128 experts a token.
TEST_F(Experts, OfTritonKernelsHaveTheirRowsInTheStrides) {
  note_router({128, 4});
  allocations[weights_at] = std::uint64_t{128} * 5888 * 1440;
  std::vector<Given> given = {{"Y", "!tt.ptr<bf16>", out_at},
                              {"YPtr", "!tt.ptr<bf16>", out_at},
                              {"stride_y_z", "i32", 4096 * 2880},
                              {"stride_y_m", "i32", 2880},
                              {"X", "!tt.ptr<bf16>", tokens_at},
                              {"W", "!tt.ptr<i8>", weights_at},
                              {"stride_w_e", "i32", 5888 * 1440},
                              {"WMxScale", "!tt.ptr<i8>", padded_at},
                              {"N", "i32", 5760},
                              {"K", "i32", 2880},
                              {"GatherIndx", "!tt.ptr<i32>", ids_at},
                              {"ExptHist", "!tt.ptr<i32>", experts_at}};
  const std::string name = "_matmul_ogs_NNT_bf16xbf16xmxfp4_64x256x128x1_swiglu";
  const auto work = std::get<Gemm>(TritonLaunch(name, given, "", {99, 1, 1}).decode().op.work);
  EXPECT_EQ(work.m, 4096);
  EXPECT_EQ(work.n, 5760);
  EXPECT_EQ(work.experts, 128);
  EXPECT_EQ(work.top, 4);
  EXPECT_EQ(work.b, DType::f4);
  EXPECT_EQ(work.scale_block, 32);
  EXPECT_EQ(work.part, ExpertsPart::first);
  memory[experts_at] = std::vector<std::int32_t>(128);
  memory[experts_at][7] = 4096;
  EXPECT_EQ(std::get<Gemm>(TritonLaunch(name, given, "", {99, 1, 1}).decode().op.work).groups, 1);
  given.back().type = "!tt.tensordesc<tensor<64x64xbf16>>";  // not read: said, not guessed
  EXPECT_FALSE(TritonLaunch(name, given, "", {99, 1, 1}).decode().recognised);
}

TEST(TritonSource, ParametersWithoutNamesOrOfOtherSizesAreRefused) {
  const std::string unnamed = "tt.func public @k(%arg0: !tt.ptr<f32> loc(\"a.py\":1:0)) {\n";
  EXPECT_FALSE(read_triton_source(unnamed, "k", {8}));
  const std::string named =
      "tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc(\"x\"(#loc)), %n: i32 "
      "loc(\"n\"(#loc))) attributes {noinline = false} {\n";
  const auto source = read_triton_source(named, "k", {8, 4, 8, 8});
  ASSERT_TRUE(source);
  EXPECT_EQ(source->find("n"), 1);
  EXPECT_EQ(source->type("x"), DType::f16);
  EXPECT_TRUE(source->parameters[0].pointer);
  EXPECT_FALSE(source->has("y"));
  EXPECT_FALSE(read_triton_source(named, "k", {8, 8}));
  EXPECT_FALSE(read_triton_source(named, "k", {8}));
  EXPECT_FALSE(read_triton_source(named, "other", {8, 4}));
  EXPECT_FALSE(read_triton_source(named.substr(0, 60), "k", {8, 4}));
}

const std::string two_heads_a_key =
    "    %c8_i32 = arith.constant 8 : i32 loc(#loc1)\n"
    "    %c-127_i32 = arith.constant -127 : i32 loc(#loc1)\n"
    "    %query_offset_1 = arith.muli %kv_head_idx, %c8_i32 : i32 loc(#loc2)\n";

std::vector<Given> unified(std::uint64_t sequences) {
  return {{"output_ptr", "!tt.ptr<bf16>", out_at},
          {"query_ptr", "!tt.ptr<bf16>", tokens_at},
          {"key_cache_ptr", "!tt.ptr<bf16>", weights_at},
          {"seq_lens_ptr", "!tt.ptr<i32>", ids_at},
          {"query_stride_1", "i64", 64},
          {"query_start_len_ptr", "!tt.ptr<i32>", experts_at},
          {"num_seqs", "i32", sequences}};
}

TEST(TritonAttention, HasTheLengthsThatLieInMemory) {
  memory.clear();
  memory[experts_at] = {0, 1, 2, 514};
  memory[ids_at] = {100, 300, 512};
  const Decoded d =
      TritonLaunch("kernel_unified_attention_2d", unified(3), two_heads_a_key, {300, 4, 1})
          .decode();
  ASSERT_TRUE(d.recognised);
  const auto work = std::get<Attention>(d.op.work);
  EXPECT_EQ(work.heads, 32);
  EXPECT_EQ(work.kv_heads, 4);
  EXPECT_EQ(work.head_dim, 64);
  EXPECT_EQ(work.seq_q, 512);
  EXPECT_EQ(work.short_batch, 2);
  EXPECT_EQ(work.short_k, 200);
  EXPECT_EQ(work.window, 0);
  memory.erase(ids_at);
  EXPECT_FALSE(TritonLaunch("kernel_unified_attention_2d", unified(3), two_heads_a_key, {300, 4, 1})
                   .decode()
                   .recognised);
}

TEST(TritonAttention, WindowsAreConstantsOfTheCode) {
  memory.clear();
  memory[experts_at] = {0, 1};
  memory[ids_at] = {4000};
  const std::string window =
      two_heads_a_key +
      "      %first_allowed_key = arith.addi %max_seq_prefix_len, %c-127_i32 : i32 loc(#loc3)\n";
  const Decoded d =
      TritonLaunch("kernel_unified_attention_3d", unified(1), window, {1, 4, 16}).decode();
  EXPECT_EQ(std::get<Attention>(d.op.work).window, 128);
}

// Latent attention: keys of 576 numbers of which 512 are the values, shared by all heads.
TEST(TritonAttention, DecodesLatentKeys) {
  memory.clear();
  memory[ids_at] = {1000, 3000};
  const std::vector<Given> given = {
      {"Q", "!tt.ptr<bf16>", tokens_at},    {"K_Buffer", "!tt.ptr<bf16>", weights_at},
      {"B_Seqlen", "!tt.ptr<i32>", ids_at}, {"Att_Out", "!tt.ptr<f32>", out_at},
      {"stride_qbs", "i32", 16 * 576},      {"stride_qh", "i32", 576},
      {"stride_buf_kbs", "i32", 576},       {"stride_buf_kh", "i32", 576},
      {"stride_mid_os", "i32", 513}};
  const Decoded d = TritonLaunch("_fwd_grouped_kernel_stage1", given, "", {2, 1, 4}).decode();
  ASSERT_TRUE(d.recognised);
  const auto work = std::get<Attention>(d.op.work);
  EXPECT_EQ(work.batch, 2);
  EXPECT_EQ(work.heads, 16);
  EXPECT_EQ(work.kv_heads, 1);
  EXPECT_EQ(work.head_dim, 576);
  EXPECT_EQ(work.head_dim_v, 512);
  EXPECT_NEAR(static_cast<double>(work.seq_k), 2000, 16);
}

Decoded decode(const std::string& name, std::vector<std::pair<int, std::uint64_t>> parameters) {
  Kernel kernel;
  kernel.mangled = "_Z6kernel", kernel.demangled = name;
  std::vector<std::uint64_t> values;
  for (const auto& [size, value] : parameters) {
    kernel.parameter_sizes.push_back(static_cast<std::uint16_t>(size));
    kernel.parameter_offsets.push_back(static_cast<std::uint16_t>(8 * values.size()));
    values.push_back(value);
  }
  std::vector<void*> arguments;
  for (std::uint64_t& value : values) arguments.push_back(&value);
  Launch launch{&kernel, {{132, 1, 1}, {256, 1, 1}}, arguments.data(), extent, known};
  return prepare(kernel)->decode(launch);
}

TEST_F(Experts, MarlinNamesItsTypesAndSizes) {
  allocations[weights_at] = std::uint64_t{128} * 1536 * 2048 / 2;
  const std::uint64_t p = tokens_at;
  const Decoded d = decode(
      "void marlin_moe_wna16::Marlin<1125899906909960l, 1125899906843648l, 1125899906909960l, "
      "1125899906909960l, 128, 1, 4, 8, false, 4, 8, false>(int4 const*, int4 const*, int4*, "
      "int4*, int4 const*, float const*, int4 const*, float const*, int4 const*, int const*, int "
      "const*, int const*, int const*, float const*, int, bool, int, int, int, int, int*, bool, "
      "bool, bool)",
      {{8, p},  {8, weights_at}, {8, out_at}, {8, p},    {8, p}, {8, p}, {8, p}, {8, p},
       {8, p},  {8, p},          {8, p},      {8, p},    {8, p}, {8, p}, {4, 8}, {1, 0},
       {4, 16}, {4, 4},          {4, 1536},   {4, 2048}, {8, p}, {1, 0}, {1, 0}, {1, 0}});
  ASSERT_TRUE(d.recognised);
  const auto work = std::get<Gemm>(d.op.work);
  EXPECT_EQ(work.m, 32);
  EXPECT_EQ(work.n, 1536);
  EXPECT_EQ(work.k, 2048);
  EXPECT_EQ(work.a, DType::bf16);
  EXPECT_EQ(work.b, DType::f4);
  EXPECT_EQ(work.scale_block, 128);
  EXPECT_EQ(work.groups, 29);  // 128 · (1 - (15/16)⁴)
}

TEST(Routers, SayHowManyExpertsThereAre) {
  const std::uint64_t p = tokens_at;
  decode(
      "void vllm::moe::topkGating<8, 256, 4, 16, 32, int, __nv_bfloat16, "
      "(vllm::moe::ScoringFunc)0>(__nv_bfloat16 const*, bool const*, float*, int, int*, int*, int, "
      "int, int, bool, float const*)",
      {{8, p}, {8, p}, {8, p}, {4, 16}, {8, p}, {8, p}, {4, 6}, {4, 0}, {4, 256}, {1, 1}, {8, p}});
  EXPECT_EQ(last_router().experts, 256);
  EXPECT_EQ(last_router().top, 6);
  decode(
      "void vllm::moe::moe_align_block_size_kernel<int>(int const*, int*, int*, int*, int*, int, "
      "int, int, int, unsigned long, int*, int, int, bool)",
      {{8, p},
       {8, p},
       {8, p},
       {8, p},
       {8, p},
       {4, 64},
       {4, 64},
       {4, 2},
       {4, 16},
       {8, 12},
       {8, p},
       {4, 99},
       {4, 1},
       {1, 0}});
  EXPECT_EQ(last_router().experts, 64);
  EXPECT_EQ(last_router().top, 6);
}

TEST(Routers, ScoresAreAProductThatWritesNothingElse) {
  const std::uint64_t p = tokens_at;
  const Decoded d = decode(
      "void gpt_oss_router_gemm_kernel<16, 16, 8, 64, 16, 4, false>(__nv_bfloat16*, "
      "__nv_bfloat16*, __nv_bfloat16*, __nv_bfloat16*, int, int, int, CUtensorMap_st, "
      "CUtensorMap_st, Profile*)",
      {{8, out_at}, {8, p}, {8, p}, {8, p}, {4, 128}, {4, 8}, {4, 2880}, {8, 0}, {8, 0}, {8, p}});
  ASSERT_TRUE(d.recognised);
  const auto work = std::get<Gemm>(d.op.work);
  EXPECT_EQ(work.m, 128);
  EXPECT_EQ(work.n, 8);
  EXPECT_EQ(work.k, 2880);
  ASSERT_EQ(d.accesses.size(), 1u);
  EXPECT_EQ(d.accesses[0].address, out_at);
  EXPECT_EQ(d.accesses[0].bytes, 128u * 8 * 2);
}

}  // namespace
}  // namespace maya::decode
