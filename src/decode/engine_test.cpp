// Kernels of vLLM, by the names and parameter lists of its library.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "decode/decode.h"

namespace maya::decode {
namespace {

struct Parameter {
  std::vector<char> bytes;
  template <class T>
  explicit Parameter(T value) : bytes(sizeof value) {
    std::memcpy(bytes.data(), &value, sizeof value);
  }
};

Decoded decode(const std::string& name, std::uint32_t tokens, std::vector<Parameter> parameters) {
  Kernel kernel;
  kernel.mangled = name.find('(') == std::string::npos ? name : "_Z6kernel";
  kernel.demangled = name;
  std::vector<void*> arguments;
  std::uint16_t offset = 0;
  for (Parameter& p : parameters) {
    arguments.push_back(p.bytes.data());
    kernel.parameter_sizes.push_back(static_cast<std::uint16_t>(p.bytes.size()));
    kernel.parameter_offsets.push_back(offset);
    offset = static_cast<std::uint16_t>(offset + p.bytes.size());
  }
  Launch launch{&kernel, {{tokens, 1, 1}, {1024, 1, 1}}, arguments.data(), nullptr, nullptr};
  Decoded d = prepare(kernel)->decode(launch);
  EXPECT_TRUE(d.recognised) << name;
  return d;
}

const Parameter pointer(std::uint64_t{0x7f0000000000});

TEST(Engine, ActivationReadsTwoHalvesAndWritesOne) {
  auto work = std::get<Pointwise>(
      decode("void vllm::act_and_mul_kernel<c10::BFloat16, __nv_bfloat162, &(c10::BFloat16 "
             "vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&, float)), true, "
             "false>(c10::BFloat16*, c10::BFloat16 const*, int, float, float, float)",
             2048,
             {pointer, pointer, Parameter(14336), Parameter(0.f), Parameter(0.f), Parameter(0.f)})
          .op.work);
  EXPECT_EQ(work.elements, 2048 * 14336);
  EXPECT_EQ(work.bytes_read, 2048LL * 14336 * 4);
  EXPECT_EQ(work.bytes_written, 2048LL * 14336 * 2);
}

TEST(Engine, NormWithResidualIsANorm) {
  auto work = std::get<Normalization>(
      decode("std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
             "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8, true>(c10::BFloat16*, long, "
             "c10::BFloat16*, c10::BFloat16 const*, float, int, int, long)",
             100,
             {pointer, Parameter(4096L), pointer, pointer, Parameter(1e-5f), Parameter(100),
              Parameter(4096), Parameter(4096L)})
          .op.work);
  EXPECT_EQ(work.rows, 100);
  EXPECT_EQ(work.cols, 4096);
  EXPECT_EQ(work.kind, NormKind::rms);
  EXPECT_TRUE(work.fused_add);
  EXPECT_EQ(work.dtype, DType::bf16);
}

TEST(Engine, NormThatQuantizesEachTokenWritesBytes) {
  auto work = std::get<Pointwise>(
      decode("void vllm::rms_norm_dynamic_per_token_quant_kernel<c10::BFloat16, "
             "c10::Float8_e4m3fn, false>(c10::Float8_e4m3fn*, float*, c10::BFloat16 const*, "
             "c10::BFloat16 const*, float const*, float, int, int, c10::BFloat16*)",
             10,
             {pointer, pointer, pointer, pointer, pointer, Parameter(1e-5f), Parameter(4096),
              Parameter(8192), pointer})
          .op.work);
  EXPECT_EQ(work.elements, 10 * 4096);
  EXPECT_EQ(work.bytes_read, 10 * 4096 * 2);
  EXPECT_EQ(work.bytes_written, 10 * 4096);
}

TEST(Engine, RotaryTurnsQueriesAndKeys) {
  auto work = std::get<Pointwise>(
      decode("void vllm::rotary_embedding_kernel<c10::BFloat16, c10::BFloat16, true>(long const*, "
             "c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, long, int, "
             "int, int, long, bool)",
             7,
             {pointer, pointer, pointer, pointer, Parameter(128), Parameter(4096L),
              Parameter(1024L), Parameter(128L), Parameter(32), Parameter(8), Parameter(128),
              Parameter(0L), Parameter(false)})
          .op.work);
  EXPECT_EQ(work.elements, 7 * 40 * 128);
}

TEST(Engine, CacheWriteMovesKeysAndValuesOfEachToken) {
  auto work = std::get<Pointwise>(
      decode("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, "
             "(vllm::Fp8KVCacheDataType)1>(__nv_bfloat16 const*, __nv_bfloat16 const*, unsigned "
             "char*, unsigned char*, long const*, long, long, long, long, long, int, int, int, "
             "float const*, float const*, int)",
             16,
             {pointer, pointer, pointer, pointer, pointer, Parameter(1L), Parameter(1L),
              Parameter(1L), Parameter(1L), Parameter(1L), Parameter(8), Parameter(128),
              Parameter(16), pointer, pointer, Parameter(1)})
          .op.work);
  EXPECT_EQ(work.elements, 16 * 2 * 8 * 128);
  EXPECT_EQ(work.bytes_read, work.elements * 2);
  EXPECT_EQ(work.bytes_written, work.elements);
}

TEST(Engine, AllReduceOverPeerMemoryIsACollective) {
  struct Signals {
    char bytes[64];
  };
  Kernel kernel;
  kernel.mangled = "_Z6kernel";
  kernel.demangled =
      "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, "
      "vllm::Signal*, __nv_bfloat16*, int, int)";
  kernel.parameter_sizes = {8, 64, 8, 8, 4, 4};
  kernel.parameter_offsets = {0, 8, 72, 80, 88, 92};
  std::uint64_t address = 0x7f0000000000;
  Signals signals{};
  int rank = 1, packs = 5120;
  void* arguments[] = {&address, &signals, &address, &address, &rank, &packs};
  const auto decoder = prepare(kernel);
  const Decoded d =
      decoder->decode({&kernel, {{36, 1, 1}, {512, 1, 1}}, arguments, nullptr, nullptr});
  const auto& work = std::get<Collective>(d.op.work);
  EXPECT_EQ(work.kind, CollectiveKind::all_reduce);
  EXPECT_EQ(work.library, CollectiveLibrary::vllm);
  EXPECT_EQ(work.bytes, 5120 * 16);
  EXPECT_EQ(work.dtype, DType::bf16);
  EXPECT_EQ(d.ranks, 2);
}

TEST(Engine, CollectivesOfSymmetricMemory) {
  const Decoded reduce = decode(
      "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, "
      "4>(c10::BFloat16**, c10::BFloat16*, c10::BFloat16*, unsigned long, unsigned long, unsigned "
      "int**, unsigned long, unsigned long)",
      8,
      {pointer, pointer, pointer, Parameter(0L), Parameter(1000L), pointer, Parameter(1L),
       Parameter(4L)});
  EXPECT_EQ(std::get<Collective>(reduce.op.work).kind, CollectiveKind::all_reduce);
  EXPECT_EQ(std::get<Collective>(reduce.op.work).bytes, 2000);
  EXPECT_EQ(reduce.ranks, 4);
  const Decoded gather = decode(
      "void (anonymous namespace)::multimem_all_gather_kernel<16>(char*, char*, unsigned long, "
      "unsigned int**, unsigned long, unsigned long)",
      8, {pointer, pointer, Parameter(4096L), pointer, Parameter(0L), Parameter(8L)});
  EXPECT_EQ(std::get<Collective>(gather.op.work).kind, CollectiveKind::all_gather);
  EXPECT_EQ(std::get<Collective>(gather.op.work).bytes, 8 * 4096);
  EXPECT_EQ(gather.ranks, 8);
}

TEST(FlashInfer, NormActivationAndRotary) {
  const auto norm = std::get<Normalization>(
      decode(
          "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, "
          "__nv_bfloat16*, __nv_bfloat16*, unsigned int, unsigned int, unsigned int, float, float)",
          7,
          {pointer, pointer, pointer, Parameter(4096u), Parameter(4096u), Parameter(4096u),
           Parameter(0.f), Parameter(0.f)})
          .op.work);
  EXPECT_EQ(norm.rows, 7);
  EXPECT_EQ(norm.cols, 4096);
  EXPECT_TRUE(norm.fused_add);
  const auto activation = std::get<Pointwise>(
      decode("void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(float "
             "silu<float>(float const&))>(__nv_bfloat16*, __nv_bfloat16 const*, int)",
             7, {pointer, pointer, Parameter(14336)})
          .op.work);
  EXPECT_EQ(activation.bytes_read, 7LL * 14336 * 4);
}

TEST(FlashInfer, SamplingReadsTheVocabularyOfEachSequence) {
  const auto work = std::get<Pointwise>(
      decode(
          "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<512u, (cub::A)2, (cub::B)2, "
          "1u, false, float, int>(float*, int*, float*, int*, int*, int, float, unsigned int, "
          "unsigned long, unsigned long)",
          16,
          {pointer, pointer, pointer, pointer, pointer, Parameter(5), Parameter(0.9f),
           Parameter(128256u), Parameter(1UL), Parameter(2UL)})
          .op.work);
  EXPECT_EQ(work.bytes_read, 16LL * 128256 * 4);
  EXPECT_EQ(work.bytes_written, 16 * 4);
}

TEST(Engine, RowsOfExpertsAreSummed) {
  const auto work = std::get<Pointwise>(
      decode("void vllm::moe::moe_sum_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16 "
             "const*, int)",
             32, {pointer, pointer, Parameter(2048)})
          .op.work);
  EXPECT_EQ(work.bytes_read, 32LL * 2048 * 8 * 2);
  EXPECT_EQ(work.bytes_written, 32LL * 2048 * 2);
}

TEST(Engine, ExpertSumsAndEmbeddingsOfNewerVersions) {
  const auto sum = std::get<Pointwise>(
      decode("void vllm::moe::moe_sum_vec_kernel<c10::BFloat16, int, 8, true>(c10::BFloat16*, "
             "c10::BFloat16 const*, long, int, long, long, int const*, int const*, long, long)",
             6,
             {pointer, pointer, Parameter(6L), Parameter(2048), Parameter(16384L), Parameter(2048L),
              pointer, pointer, Parameter(0L), Parameter(0L)})
          .op.work);
  EXPECT_EQ(sum.bytes_read, 6LL * 2048 * 8 * 2);
  EXPECT_EQ(sum.bytes_written, 6LL * 2048 * 2);
  const auto rows = std::get<Pointwise>(
      decode("void vllm::vocab_embedding::vocab_parallel_embedding_kernel<int, uint4>(uint4*, int "
             "const*, uint4 const*, long, long, long, long, long, long, long)",
             6,
             {pointer, pointer, pointer, Parameter(6L), Parameter(256L), Parameter(0L),
              Parameter(1000L), Parameter(1000L), Parameter(1000L), Parameter(0L)})
          .op.work);
  EXPECT_EQ(rows.bytes_read, 6LL * 256 * 16);
  EXPECT_EQ(rows.bytes_written, 6LL * 256 * 16);
}

// SGLang's kernels take one struct by value.
template <std::size_t N>
Parameter structure(std::initializer_list<std::pair<std::size_t, std::uint32_t>> words) {
  std::array<char, N> bytes{};
  for (const auto& [at, value] : words) std::memcpy(bytes.data() + at, &value, 4);
  return Parameter(bytes);
}

TEST(Engine, SglangActivationSaysItsSizesInAStruct) {
  auto work = std::get<Pointwise>(
      decode("void sglang::act_and_mul_kernel<__nv_bfloat16, (sglang::ActivationKind)0, true, "
             "false, false, false, false, false>(sglang::ActivationParams)",
             896, {structure<64>({{16, 14336}, {20, 128}})})
          .op.work);
  EXPECT_EQ(work.elements, 128 * 14336);
  EXPECT_EQ(work.bytes_read, 128LL * 14336 * 4);
}

TEST(Engine, SglangRotatesQueriesAndKeysInPlace) {
  auto work = std::get<Pointwise>(
      decode("void sglang::fused_rope_kernel<true, 128l, true, __nv_bfloat16, __nv_bfloat16, long, "
             "16u>(sglang::FusedRopeParams)",
             640, {structure<72>({{56, 32}, {60, 8}, {64, 128}})})
          .op.work);
  EXPECT_EQ(work.elements, 128 * 40 * 128);
  EXPECT_EQ(work.bytes_written, 128LL * 40 * 128 * 2);
}

TEST(Engine, SglangCacheWriteMovesKeysAndValues) {
  const std::string name =
      "void sglang::store_kvcache_kernel<2048l, 1024l, 128u, true, "
      "long>(sglang::StoreKVCacheParams)";
  auto work = std::get<Pointwise>(decode(name, 8, {structure<104>({{80, 7}})}).op.work);
  EXPECT_EQ(work.bytes_read, 7 * (2048 + 1024));
  EXPECT_EQ(work.bytes_written, 7 * (2048 + 1024));
}

// A matrix of the CuTe DSL is an address and the number of its rows; its columns are in the name.
TEST(Engine, NormsOfTheCuteDslAreReadOffTheirNames) {
  auto work = std::get<Normalization>(
      decode("kernel_cutlass_kernel_flashinfernormkernelsfused_add_rmsnormFusedAddRMSNormKernel_"
             "object_at__tensorptrbf16gmemalign128oi64409640961_tensorptrbf16gmemalign128oi64409640"
             "961_tensorptrbf16gme_0",
             8,
             {structure<16>({{8, 77}}), structure<16>({{8, 77}}), pointer, Parameter(77L),
              Parameter(1e-5f)})
          .op.work);
  EXPECT_EQ(work.rows, 77);
  EXPECT_EQ(work.cols, 4096);
  EXPECT_TRUE(work.fused_add);
}

}  // namespace
}  // namespace maya::decode
