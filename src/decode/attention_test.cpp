// Attention kernels take one struct by value, whose fields moved over the versions.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "decode/lengths.h"
#include "decode/testing/call.h"

namespace maya::decode {
namespace {

TEST(Attention, Flash2ReadsItsParameters) {
  std::vector<std::byte> p(472);
  put<std::int32_t>(p, 96, 32), put<std::int32_t>(p, 100, 8), put<std::int32_t>(p, 104, 4);
  std::int32_t dims[] = {2, 4000, 4000, 0, 128, 4096, 4096, 128, 0, 0};
  for (int i = 0; i < 10; ++i) put(p, 176 + 4 * i, dims[i]);
  // 4000 rounds up to 4096 in steps of 128
  put(p, 216, 0.088388f), put(p, 220, 0.088388f * 1.442695f);
  Call call(
      "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
      "cutlass::bfloat16_t, Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, "
      "true, false, "
      "false, false, true, false, false>(pytorch_flash::Flash_fwd_params)");
  auto w = call.raw(p).grid(32, 2, 32).work<Attention>();
  EXPECT_EQ(w.batch, 2);
  EXPECT_EQ(w.heads, 32);
  EXPECT_EQ(w.kv_heads, 8);
  EXPECT_EQ(w.seq_q, 4000);
  EXPECT_EQ(w.head_dim, 128);
  EXPECT_TRUE(w.causal);
  EXPECT_FALSE(w.dropout);
  EXPECT_EQ(w.dtype, DType::bf16);
}

// Three sequences of an engine: two single tokens and a prompt that has 100 keys already.
constexpr std::uint64_t starts_at = 0x7f0000001000, keys_at = 0x7f0000002000;
const std::int32_t starts[] = {0, 1, 2, 52}, keys[] = {7000, 500, 150};
const void* lengths(std::uint64_t address, std::uint64_t bytes) {
  if (address >= starts_at && address + bytes <= starts_at + sizeof starts)
    return reinterpret_cast<const char*>(starts) + (address - starts_at);
  if (address >= keys_at && address + bytes <= keys_at + sizeof keys)
    return reinterpret_cast<const char*>(keys) + (address - keys_at);
  return nullptr;
}

void expect_the_three(const Attention& w) {
  EXPECT_EQ(w.batch, 1);
  EXPECT_EQ(w.heads, 32);
  EXPECT_EQ(w.kv_heads, 8);
  EXPECT_EQ(w.seq_q, 50);
  EXPECT_EQ(w.seq_k, 150);
  EXPECT_EQ(w.short_batch, 2);
  EXPECT_EQ(w.short_q, 1);
  EXPECT_NEAR(static_cast<double>(w.short_k), 3750, 16);
}

std::uint64_t everywhere(std::uint64_t address) { return address >= 0x7f0000000000 ? 4096 : 0; }

TEST(Attention, ListsOfLengthsAreOnlyRead) {
  std::uint64_t words[] = {starts_at, 5, 0x7f0000007000, keys_at};
  void* arguments[] = {words};
  Kernel kernel;
  kernel.parameter_sizes = {sizeof words};
  Launch launch{&kernel, {}, arguments, everywhere, lengths};
  Decoded d;
  writes_all_but(launch, {starts_at, keys_at}, d);
  ASSERT_EQ(d.accesses.size(), 3u);
  EXPECT_FALSE(d.accesses[0].write);
  EXPECT_TRUE(d.accesses[1].write);
  EXPECT_EQ(d.accesses[1].address, 0x7f0000007000u);
  EXPECT_FALSE(d.accesses[2].write);
}

TEST(Attention, Flash2CountsTheKeysInUse) {
  std::vector<std::byte> p(480);
  put<std::int32_t>(p, 96, 32), put<std::int32_t>(p, 100, 8), put<std::int32_t>(p, 104, 4);
  std::int32_t dims[] = {3, 50, 8192, 0, 128, 128, 8192, 128, 0, 52};
  for (int i = 0; i < 10; ++i) put(p, 176 + 4 * i, dims[i]);
  put(p, 216, 0.088388f), put(p, 220, 0.088388f * 1.442695f);
  put(p, 224, starts_at), put(p, 232, std::uint64_t{0x7f0000009000}), put(p, 248, keys_at);
  Call call(
      "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
      "cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::bfloat16_t> >, true, "
      "false, false, false, true, false, true, false>(flash::Flash_fwd_params)");
  expect_the_three(call.raw(p).values(lengths).grid(1, 3, 32).work<Attention>());
}

// A batch of single tokens: vLLM hands over the four heads that share a key as rows of one head,
// and no starts of sequences.
TEST(Attention, Flash2CountsTheKeysOfSingleTokens) {
  std::vector<std::byte> p(480);
  put<std::int32_t>(p, 96, 8), put<std::int32_t>(p, 100, 8), put<std::int32_t>(p, 104, 1);
  std::int32_t dims[] = {3, 4, 32768, 0, 128, 128, 32768, 128, 0, 12};
  for (int i = 0; i < 10; ++i) put(p, 176 + 4 * i, dims[i]);
  put(p, 216, 0.088388f), put(p, 220, 0.088388f * 1.442695f);
  put(p, 248, keys_at);
  Call call(
      "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "
      "cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::bfloat16_t> >, false, "
      "false, false, false, true, false, true, false>(flash::Flash_fwd_params)");
  auto w = call.raw(p).values(lengths).grid(1, 3, 8).work<Attention>();
  EXPECT_EQ(w.batch, 3);
  EXPECT_EQ(w.heads, 32);
  EXPECT_EQ(w.kv_heads, 8);
  EXPECT_EQ(w.seq_q, 1);
  EXPECT_NEAR(static_cast<double>(w.seq_k), (7000 + 500 + 150) / 3.0, 16);
  // The kernel that combines the parts has the same struct, and the next layer reads the lists.
  Call combine(
      "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, "
      "false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, "
      "cutlass::bfloat16_t> >, 4, 1, true>(flash::Flash_fwd_params)");
  const Decoded d = combine.raw(p).values(lengths).extents(everywhere).grid(24).decode();
  ASSERT_FALSE(d.accesses.empty());
  for (const Access& access : d.accesses)
    EXPECT_TRUE(access.address != keys_at || !access.write) << access.address;
}

TEST(Attention, Flash3CountsTheKeysInUseOfPages) {
  std::vector<std::byte> p(800);
  const std::int32_t q[] = {52, 128, 32, 1}, k[] = {16, 128, 8, 4096};
  for (int i = 0; i < 4; ++i) put(p, 8 + 4 * i, q[i]), put(p, 64 + 4 * i, k[i]);
  put(p, 600, starts_at), put(p, 632, keys_at);
  const std::string name =
      "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::"
      "CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, "
      "cute::tuple<cute::C<128>, cute::C<128>, cute::C<128> >, 128, cutlass::bfloat16_t, float, "
      "cutlass::arch::Sm90, true, false, false, true, true, false> > > >(Params)";
  Call call(name);
  expect_the_three(call.raw(p).values(lengths).grid(132).work<Attention>());
  // The kernel for windows has their sizes in front of the lists.
  std::vector<std::byte> windowed = p;
  put(windowed, 580, std::int32_t{127}), put(windowed, 584, std::int32_t{0});
  std::string local = name;
  local.replace(local.find("true, false, false, true, true"), 11, "false, true");
  Call window(local);
  const auto w = window.raw(windowed).values(lengths).grid(132).work<Attention>();
  EXPECT_EQ(w.window, 128);
  EXPECT_TRUE(w.causal);
  put(windowed, 580, std::int32_t{1023});
  Call wider(local);
  EXPECT_EQ(wider.raw(windowed).values(lengths).grid(132).work<Attention>().window, 1024);
  EXPECT_NE(wider.key_, window.key_);
  // Without their values nobody knows how long the contexts are, and that is said.
  Call blind(name);
  EXPECT_FALSE(blind.raw(p).grid(132).decode().recognised);
}

// Packed sequences of a training batch: one list of starts for queries and keys.
std::string flash3_of(const char* loop, const char* sizes, const char* flags) {
  return "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttn" +
         std::string(loop) + "Sm90<flash::CollectiveMainloop" + loop + "Sm90<" + sizes +
         ", cutlass::bfloat16_t, float, cutlass::arch::Sm90, " + flags + "> > > >(Params)";
}
constexpr std::uint64_t packed_at = 0x7f0000003000;
const std::int32_t packed[] = {0, 1000, 1700, 3000, 4096, 4096, 4096};
const void* packed_starts(std::uint64_t address, std::uint64_t bytes) {
  if (address < packed_at || address + bytes > packed_at + sizeof packed) return nullptr;
  return reinterpret_cast<const char*>(packed) + (address - packed_at);
}
double pairs_in_window(double window) {
  double pairs = 0;
  for (double length : {1000., 700., 1300., 1096.})
    for (double row = 1; row <= length; ++row) pairs += std::min(row, window);
  return pairs;
}
void expect_packed(const Attention& w, double window) {
  EXPECT_EQ(w.batch, 4);
  EXPECT_EQ(w.heads, 6);
  EXPECT_TRUE(w.causal);
  EXPECT_EQ(w.window, window > 4096 ? 0 : static_cast<std::int64_t>(window));
  const double pairs = pairs_in_window(window);
  EXPECT_NEAR(4 * attention_pairs(w), pairs, 0.01 * pairs);
}

TEST(Attention, Flash3KnowsThePackedSequencesAndTheWindowOfTraining) {
  const std::int32_t shape[] = {4096, 128, 6, 1};
  std::vector<std::byte> p(2112);
  for (int i = 0; i < 4; ++i) put(p, 8 + 4 * i, shape[i]), put(p, 48 + 4 * i, shape[i]);
  for (int at : {24, 64}) put(p, at, std::int64_t{768}), put(p, at + 8, std::int64_t{128});
  put(p, 1500, 384), put(p, 1504, 0), put(p, 1520, 1);
  put(p, 1536, packed_at), put(p, 1544, packed_at);
  const char* sizes =
      "2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, "
      "cute::tuple<cute::C<128>, cute::C<128>, cute::C<128> >, 128";
  Call windowed(flash3_of("Fwd", sizes, "false, true, false, true, false, false"));
  expect_packed(windowed.raw(p).values(packed_starts).grid(132).work<Attention>(), 385);
  Call whole(flash3_of("Fwd", sizes, "true, false, false, true, false, false"));
  expect_packed(whole.raw(p).values(packed_starts).grid(132).work<Attention>(), 1e9);
  // Nothing is known of their lengths: said, not guessed.
  Call blind(flash3_of("Fwd", sizes, "true, false, false, true, false, false"));
  auto nothing = [](std::uint64_t, std::uint64_t) -> const void* { return nullptr; };
  EXPECT_FALSE(blind.raw(p).values(nothing).grid(132).decode().recognised);

  std::vector<std::byte> back(1344);
  for (int i = 0; i < 4; ++i) put(back, 8 + 4 * i, shape[i]), put(back, 48 + 4 * i, shape[i]);
  put(back, 960, 0.125f), put(back, 964, 0.125f * 1.442695f), put(back, 968, 384);
  put(back, 1016, packed_at), put(back, 1024, packed_at);
  const char* tiles =
      "2, 2, 2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, "
      "cute::tuple<cute::C<64>, cute::C<128>, cute::C<128> >";
  Call backward(flash3_of("Bwd", tiles, "false, true, false, true, false, true"));
  const auto w = backward.raw(back).values(packed_starts).grid(32, 6).work<Attention>();
  expect_packed(w, 385);
  EXPECT_EQ(w.direction, Direction::backward);
}

TEST(Attention, Flash3KnowsTheWindowOfEqualSequences) {
  const std::int32_t shape[] = {2048, 128, 6, 2};
  std::vector<std::byte> p(2368);
  for (int i = 0; i < 4; ++i) put(p, 8 + 4 * i, shape[i]), put(p, 48 + 4 * i, shape[i]);
  for (int at : {24, 64}) put(p, at, std::int64_t{768}), put(p, at + 8, std::int64_t{128});
  put(p, 1500, 320), put(p, 1504, 0), put(p, 1520, 1);
  Call call(flash3_of("Fwd",
                      "2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, "
                      "cute::tuple<cute::C<128>, cute::C<128>, cute::C<128> >, 128",
                      "false, true, false, false, false, false"));
  const auto w = call.raw(p).grid(132).work<Attention>();
  EXPECT_EQ(w.batch, 2);
  EXPECT_EQ(w.window, 321);
  EXPECT_TRUE(w.causal);
}

TEST(Attention, MemoryEfficientReadsItsParameters) {
  std::vector<std::byte> p(280);
  std::int32_t dims[] = {64, 64, 1000, 900, 900, 1};
  for (int i = 0; i < 6; ++i) put(p, 96 + 4 * i, dims[i]);
  Call call(
      "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::"
      "half_t, "
      "cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)");
  auto w = call.raw(p).grid(16, 12, 3).work<Attention>();
  EXPECT_EQ(w.seq_q, 1000);
  EXPECT_EQ(w.seq_k, 900);
  EXPECT_EQ(w.heads, 12);
  EXPECT_EQ(w.batch, 3);
  EXPECT_TRUE(w.causal);
}

TEST(Attention, MemoryEfficientForwardMayLeaveAbsoluteKeysUnset) {
  std::vector<std::byte> p(280);
  std::int32_t dims[] = {64, 64, 500, 300, 0, 0};
  for (int i = 0; i < 6; ++i) put(p, 96 + 4 * i, dims[i]);
  put<std::uint8_t>(p, 117, 0x56);  // padding behind the mask's kind
  Call call(
      "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::"
      "bfloat16_t, "
      "cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)");
  auto w = call.raw(p).grid(8, 16, 2).work<Attention>();
  EXPECT_EQ(w.seq_k, 300);
  EXPECT_FALSE(w.causal);
}

TEST(Attention, MemoryEfficientBackwardFindsTheMaskBehindTheHeads) {
  for (bool causal : {false, true}) {
    std::vector<std::byte> p(480);
    std::int32_t dims[] = {64, 64, 500, 500, 16, 1, causal};
    for (int i = 0; i < 7; ++i) put(p, 144 + 4 * i, dims[i]);
    Call call(
        "fmha_cutlassB_bf16_aligned_64x64_k64_sm80(PyTorchMemEffAttention::AttentionBackwardKernel<"
        "cutlass::arch::Sm80, cutlass::bfloat16_t, true, false, true, 64, 64, 64, false>::Params)");
    auto w = call.raw(p).grid(8, 16, 2).work<Attention>();
    EXPECT_EQ(w.seq_q, 500);
    EXPECT_EQ(w.causal, causal);
    EXPECT_EQ(w.direction, Direction::backward);
  }
}

}  // namespace
}  // namespace maya::decode
