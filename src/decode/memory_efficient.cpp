// The memory-efficient attention of CUTLASS / xFormers, whose kernels take one struct by value.
//
// The struct gained fields over the versions, so the dimensions are found by what they must
// satisfy (rounded lengths, grid), starting from where the current version keeps them.
#include <algorithm>
#include <atomic>

#include "decode/rule.h"

namespace maya::decode {
namespace {

// CUTLASS fmha: Params { …pointers…; [int window]; float scale; int head_dim, head_dim_value,
// queries,
//   keys, (forward) keys_absolute | (backward) heads; uint8 mask; … }, grid (blocks, heads, batch).
class MemoryEfficient : public Decoder {
 public:
  bool backward{}, dropout{};
  DType dtype{DType::f16};
  int queries_per_block{64};
  mutable std::atomic<std::int32_t> dims_at{-1};

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    std::int32_t at = place(a);
    if (at < 0 || capacity < 32) return 0;
    const std::byte* p = a.raw(0, at, 25);
    if (!p) return 0;
    std::memcpy(out, p, 16);
    // Only bytes that are certainly set: padding is noise.
    out[16] = p[20];
    out[17] = backward ? p[24] : std::byte{};
    return 18;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    Attention work;
    work.batch = static_cast<std::int64_t>(a.grid(2));
    work.heads = work.kv_heads = static_cast<std::int64_t>(a.grid(1));
    work.dtype = dtype;
    work.dropout = dropout;
    work.direction = backward ? Direction::backward : Direction::forward;
    work.kernel = AttentionKernel::memory_efficient;
    std::int32_t at = place(a);
    if (at >= 0) {
      work.head_dim = a.at<std::int32_t>(0, at);
      work.head_dim_v = a.at<std::int32_t>(0, at + 4);
      work.seq_q = a.at<std::int32_t>(0, at + 8);
      work.seq_k = a.at<std::int32_t>(0, at + 12);
      // Newer backward structs have an int (how many heads share keys) in front of the mask's kind.
      std::size_t mask = at + 20;
      if (backward && a.at<std::uint8_t>(0, mask) != 0 &&
          a.at<std::int32_t>(0, mask) == a.at<std::uint8_t>(0, mask) && a.size(0) >= 480)
        mask += 4;
      work.causal = a.at<std::uint8_t>(0, mask) != 0;
      if (!backward && at == 96) {
        work.varlen = a.pointer(0, 32) != 0;
        work.window = a.at<std::int32_t>(0, 88);
      } else if (backward && at == 144) {
        work.varlen = a.pointer(0, 64) != 0;
        work.window = a.at<std::int32_t>(0, 136);
      }
    } else {
      work.seq_q = work.seq_k = static_cast<std::int64_t>(a.grid(0)) * queries_per_block;
      work.head_dim = work.head_dim_v = 64;
      d.recognised = launch.arguments == nullptr;
    }
    d.op.work = work;
    return d;
  }

 private:
  bool plausible(const Arguments& a, std::size_t at) const {
    std::int64_t d = a.at<std::int32_t>(0, at), dv = a.at<std::int32_t>(0, at + 4);
    std::int64_t q = a.at<std::int32_t>(0, at + 8), k = a.at<std::int32_t>(0, at + 12);
    std::int64_t fifth = a.at<std::int32_t>(0, at + 16);
    if (d < 1 || d > 65536 || dv < 1 || dv > 65536 || q < 1 || k < 1) return false;
    if (backward) return fifth == static_cast<std::int64_t>(a.grid(1));
    if (a.at<std::uint8_t>(0, at + 20) > 2) return false;
    return (fifth == k || fifth == 0) &&
           ceil_div(q, queries_per_block) == static_cast<std::int64_t>(a.grid(0));
  }
  std::int32_t place(const Arguments& a) const {
    std::int32_t known = dims_at.load(std::memory_order_relaxed);
    if (known >= 0 && plausible(a, known)) return known;
    std::size_t total = a.size(0);
    if (!a.raw(0, 0, total)) return -1;
    std::size_t first = backward ? 144 : 96;
    for (std::size_t i = 0; i < 64; ++i) {
      std::size_t at = i == 0 ? first : 40 + 4 * i;
      if (at + 24 > total || !plausible(a, at)) continue;
      dims_at.store(static_cast<std::int32_t>(at), std::memory_order_relaxed);
      return static_cast<std::int32_t>(at);
    }
    return -1;
  }
};

}  // namespace

Made prepare_memory_efficient(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  const std::string& text = kernel.demangled;
  bool cutlass_name = starts_with(leaf, "fmha_cutlass");
  if (!cutlass_name && !contains(leaf, "attention_kernel_b") &&
      !contains(leaf, "attention_kernel_backward"))
    return nullptr;
  auto d = std::make_unique<MemoryEfficient>();
  d->backward =
      cutlass_name ? starts_with(leaf, "fmha_cutlassB") : contains(text, "AttentionBackwardKernel");
  d->dropout = contains(leaf, "dropout");
  d->dtype = contains(leaf, "_bf16_") || contains(text, "bfloat16_t")    ? DType::bf16
             : contains(leaf, "_f32_") || contains(text, "Kernel<float") ? DType::f32
                                                                         : DType::f16;
  // …_aligned_64x128_rf_sm80
  std::size_t x = leaf.find("aligned_");
  if (x != std::string::npos) d->queries_per_block = std::max(1, std::atoi(leaf.c_str() + x + 8));
  return d;
}

}  // namespace maya::decode
