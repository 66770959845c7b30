// FlashAttention 2: ATen's copy and the flash-attn package. Its kernels take one struct by value.
//
// The struct gained fields over the versions, so the dimensions are found by what they must
// satisfy (rounded lengths, grid), starting from where the current version keeps them.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "decode/lengths.h"
#include "decode/rule.h"

namespace maya::decode {
namespace {

std::int64_t round_up(std::int64_t v, std::int64_t m) { return (v + m - 1) / m * m; }

// One long template argument: the numbers inside "Flash_fwd_kernel_traits<96, 64, 64, …>".
std::vector<std::string> traits(const Name& name, std::string_view marker) {
  for (const std::string& t : name.templates) {
    std::size_t at = t.find(marker);
    if (at == std::string::npos) continue;
    std::size_t open = t.find('<', at);
    if (open == std::string::npos) continue;
    int depth = 0;
    for (std::size_t i = open; i < t.size(); ++i) {
      if (t[i] == '<') ++depth;
      if (t[i] == '>' && --depth == 0)
        return split_arguments(std::string_view(t).substr(open + 1, i - open - 1));
    }
    return split_arguments(std::string_view(t).substr(open + 1));
  }
  return {};
}

struct FlashSizes {
  std::int64_t batch{}, heads{}, kv_heads{}, seq_q{}, seq_k{}, head_dim{};
  std::int64_t total_q{};
  std::uint64_t cu_q{}, cu_k{};
  std::uint64_t behind[2]{};  // what follows them: keys in use per sequence, in one of the two
  std::int32_t window_left{-1}, window_right{-1};
  std::int64_t short_batch{}, short_q{}, short_k{};
  void use(const Lengths& used) {
    batch = used.batch, seq_q = used.seq_q, seq_k = used.seq_k;
    short_batch = used.short_batch, short_q = used.short_q, short_k = used.short_k;
  }
};

// Flash_fwd_params: { q, k, v; 9 strides; int h, h_k, ratio; o, [oaccum]; 3 strides; p; lse;
// [lseaccum];
//   int b, seqlen_q, seqlen_k, [seqlen_knew], d, seqlen_q_rounded, seqlen_k_rounded, d_rounded, … }
class Flash2 : public Decoder {
 public:
  enum class Part : std::uint8_t { forward, backward, dot_do_o, convert_dq, combine, other } part{};
  DType dtype{DType::f16};
  int head_dim{};
  bool causal{}, local{}, dropout{};

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    FlashSizes s;
    if (!sizes(a, s)) return 0;
    std::int64_t seq_q = 0, seq_k = 0;  // of packed sequences
    if (auto used = in_use(a, s))
      s.use(*used);
    else if (s.cu_q)
      varlen(a, s, seq_q, seq_k);
    std::int64_t words[13] = {s.batch,
                              s.heads,
                              s.kv_heads,
                              s.seq_q,
                              s.seq_k,
                              s.head_dim,
                              s.total_q,
                              (s.cu_q ? 1 : 0) | (s.window_right == 0 ? 2 : 0) |
                                  (static_cast<std::int64_t>(s.window_left) << 2),
                              s.short_batch,
                              s.short_q,
                              s.short_k,
                              seq_q,
                              seq_k};
    if (capacity < sizeof words) return 0;
    std::memcpy(out, words, sizeof words);
    return sizeof words;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    FlashSizes s;
    if (!sizes(a, s)) {
      // The grid alone: forward launches (query blocks, batch, heads).
      s.batch = static_cast<std::int64_t>(a.grid(1));
      s.heads = s.kv_heads = static_cast<std::int64_t>(a.grid(2));
      s.seq_q = s.seq_k = static_cast<std::int64_t>(a.grid(0)) * 128;
      s.head_dim = head_dim;
      d.recognised = launch.arguments == nullptr;
    }
    // Also the kernel that combines the parts of a split context is given the whole struct.
    if (s.cu_q || paged(s)) writes_all_but(launch, {s.cu_q, s.cu_k, s.behind[0], s.behind[1]}, d);
    std::int64_t seq_q = s.seq_q, seq_k = s.seq_k;
    if (auto used = in_use(a, s)) {
      s.use(*used);
      seq_q = s.seq_q, seq_k = s.seq_k;
      // Rows that are heads: the same work as one row for each of the heads, and said so.
      if (!s.cu_q && !causal && s.heads == s.kv_heads) s.heads *= seq_q, seq_q = 1;
    } else if (paged(s) && part == Part::forward && launch.known != nullptr) {
      d.recognised = false;  // the longest context that the engine allows says little of this one
    } else if (s.cu_q && !varlen(a, s, seq_q, seq_k) && launch.known != nullptr) {
      d.recognised = false;
    }
    if (part == Part::forward || part == Part::backward) {
      Attention work;
      work.batch = s.batch;
      work.heads = s.heads;
      work.kv_heads = s.kv_heads;
      work.seq_q = seq_q;
      work.seq_k = seq_k;
      work.short_batch = s.short_batch, work.short_q = s.short_q, work.short_k = s.short_k;
      work.head_dim = work.head_dim_v = s.head_dim;
      work.dtype = dtype;
      work.causal = causal || (local && s.window_right == 0);
      work.dropout = dropout;
      work.varlen = s.cu_q != 0;
      work.window = local && s.window_left > 0 ? s.window_left : 0;
      work.direction = part == Part::forward ? Direction::forward : Direction::backward;
      work.kernel = AttentionKernel::flash2;
      d.op.work = work;
      return d;
    }
    Pointwise work;
    std::int64_t rows = s.batch * s.heads * seq_q;
    work.elements = rows * s.head_dim;
    work.dtype = dtype;
    work.flops_per_element = 2;
    if (part == Part::dot_do_o) {  // dO and O in, one float per row out, dQ accumulator cleared
      work.inputs = 2;
      work.bytes_read = work.elements * 4;
      work.bytes_written = rows * 4 + work.elements * 4;
    } else if (part == Part::convert_dq) {  // float accumulator to the data type
      work.bytes_read = work.elements * 4;
      work.bytes_written = work.elements * 2;
    } else {  // split-KV partial results
      work.bytes_read = work.elements * 8;
      work.bytes_written = work.elements * 2;
    }
    d.op.work = work;
    return d;
  }

 private:
  mutable std::atomic<std::int32_t> dims_at{-1};

  // The keys in use are listed by sequence: they lie in pages.
  bool paged(const FlashSizes& s) const {
    return (part == Part::forward || part == Part::combine) && (s.behind[0] || s.behind[1]);
  }

  static bool plausible(const Arguments& a, std::size_t at, bool knew, int head_dim,
                        FlashSizes& s) {
    std::size_t d_at = at + 12 + (knew ? 4 : 0);
    std::int64_t b = a.at<std::int32_t>(0, at), q = a.at<std::int32_t>(0, at + 4);
    std::int64_t k = a.at<std::int32_t>(0, at + 8), d = a.at<std::int32_t>(0, d_at);
    std::int64_t qr = a.at<std::int32_t>(0, d_at + 4), kr = a.at<std::int32_t>(0, d_at + 8);
    std::int64_t dr = a.at<std::int32_t>(0, d_at + 12);
    if (b < 1 || q < 1 || k < 1 || d < 1 || d > dr || dr > 512) return false;
    if (qr != round_up(q, 128) || kr != round_up(k, 128)) return false;
    if (head_dim && dr > head_dim) return false;
    s.batch = b, s.seq_q = q, s.seq_k = k, s.head_dim = d;
    return true;
  }

  bool sizes(const Arguments& a, FlashSizes& s) const {
    std::size_t total = a.size(0);
    if (!a.raw(0, 0, total) || total < 200) return false;
    std::int32_t known = dims_at.load(std::memory_order_relaxed);
    bool found = false;
    bool knew = true;
    std::size_t at = 176;
    if (known >= 0) {
      at = static_cast<std::size_t>(known >> 1);
      knew = known & 1;
      found = plausible(a, at, knew, head_dim, s);
    }
    if (!found) {
      for (std::size_t i = 0; i < 40 && !found; ++i) {
        at = i == 0 ? 176 : 112 + 4 * i;
        for (bool with_new : {true, false}) {
          if (plausible(a, at, with_new, head_dim, s)) {
            knew = with_new;
            found = true;
            break;
          }
        }
      }
      if (!found) return false;
      dims_at.store(static_cast<std::int32_t>(at) * 2 + (knew ? 1 : 0), std::memory_order_relaxed);
    }
    s.heads = a.at<std::int32_t>(0, 96);
    s.kv_heads = a.at<std::int32_t>(0, 100);
    if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads)
      s.heads = s.kv_heads = static_cast<std::int64_t>(a.grid(2));
    // d, rounded ×3, rotary_dim, [total_q], two scales, then the cumulative lengths.
    std::size_t after = at + 12 + (knew ? 4 : 0) + 16;
    std::size_t scales = after;
    if (knew) scales += 4;  // rotary_dim
    float scale = a.at<float>(0, scales), log2 = a.at<float>(0, scales + 4);
    auto is_scale = [](float x, float y) {
      return x > 0 && x < 64 && std::fabs(y - x * 1.442695f) < 0.01f * y;
    };
    if (!is_scale(scale, log2)) {
      s.total_q = a.at<std::int32_t>(0, scales);
      scales += 4;
    }
    std::size_t cu = (scales + 8 + 7) / 8 * 8;
    s.cu_q = a.pointer(0, cu);
    s.cu_k = a.pointer(0, cu + 8);
    if (cu + 32 <= total) s.behind[0] = a.pointer(0, cu + 16), s.behind[1] = a.pointer(0, cu + 24);
    if (total >= 440 && at == 176 && knew)
      s.window_left = a.at<std::int32_t>(0, 388), s.window_right = a.at<std::int32_t>(0, 392);
    return true;
  }

  // Engines keep keys in pages and say how many of them each sequence uses.
  std::optional<Lengths> in_use(const Arguments& a, const FlashSizes& s) const {
    const Launch& launch = a.launch();
    if (launch.known == nullptr || part != Part::forward) return std::nullopt;
    const auto count = static_cast<std::uint64_t>(s.batch);
    // Without starts every sequence has the same number of rows: single tokens, whose heads that
    // share a key are taken for rows of one head.
    std::vector<std::int32_t> even;
    const std::int32_t* starts = nullptr;
    if (s.cu_q) {
      starts = static_cast<const std::int32_t*>(launch.known(s.cu_q, (count + 1) * 4));
      if (starts == nullptr || starts[0] != 0) return std::nullopt;
    } else {
      for (std::int64_t i = 0; i <= s.batch; ++i)
        even.push_back(static_cast<std::int32_t>(i * s.seq_q));
      starts = even.data();
    }
    for (std::uint64_t address : s.behind) {
      if (address < 0x10000) continue;
      const auto* keys = static_cast<const std::int32_t*>(launch.known(address, count * 4));
      if (keys == nullptr || *std::max_element(keys, keys + count) > s.seq_k) continue;
      if (auto lengths = typical_lengths(starts, keys, s.batch, causal)) return lengths;
    }
    return std::nullopt;
  }

  // Packed sequences: the lengths whose squares add up to the real ones. False where these are not
  // known: the mean then.
  static bool varlen(const Arguments& a, const FlashSizes& s, std::int64_t& seq_q,
                     std::int64_t& seq_k) {
    auto bytes = static_cast<std::uint64_t>(s.batch + 1) * 4;
    const void* q = a.launch().known ? a.launch().known(s.cu_q, bytes) : nullptr;
    const void* k = a.launch().known && s.cu_k ? a.launch().known(s.cu_k, bytes) : q;
    if (q && k) {
      const auto* cq = static_cast<const std::int32_t*>(q);
      const auto* ck = static_cast<const std::int32_t*>(k);
      double pairs = 0, tokens_q = 0, tokens_k = 0;
      for (std::int64_t i = 0; i < s.batch; ++i) {
        double lq = cq[i + 1] - cq[i], lk = ck[i + 1] - ck[i];
        if (lq < 0 || lk < 0) return false;
        pairs += lq * lk, tokens_q += lq, tokens_k += lk;
      }
      if (tokens_q > 0 && tokens_k > 0) {
        double mean = std::sqrt(pairs / static_cast<double>(s.batch));
        double skew = std::sqrt(tokens_q / tokens_k);
        seq_q = std::max<std::int64_t>(1, std::llround(mean * skew));
        seq_k = std::max<std::int64_t>(1, std::llround(mean / skew));
      }
      return true;
    }
    if (s.total_q > 0 && s.batch > 0 && s.total_q <= s.batch * s.seq_q) {
      seq_q = std::max<std::int64_t>(1, s.total_q / s.batch);
      if (s.seq_k == s.seq_q) seq_k = seq_q;
    }
    return false;
  }
};

}  // namespace

Made prepare_flash2(const Kernel&, const Name& name) {
  if (!starts_with(name.leaf, "flash_fwd") && !starts_with(name.leaf, "flash_bwd")) return nullptr;
  auto d = std::make_unique<Flash2>();
  bool forward = contains(name.leaf, "flash_fwd");
  std::vector<std::string> t = traits(name, forward ? "fwd_kernel_traits" : "bwd_kernel_traits");
  if (!t.empty()) d->head_dim = std::atoi(t[0].c_str());
  for (const std::string& s : t)
    if (contains(s, "bfloat16_t")) d->dtype = DType::bf16;
  // The flags behind the traits.
  std::vector<bool> flags;
  for (const std::string& s : name.templates)
    if (s == "true" || s == "false") flags.push_back(s == "true");
  using Part = Flash2::Part;
  if (name.leaf == "flash_fwd_kernel") {
    d->part = Part::forward;
    if (flags.size() > 1) d->dropout = flags[0], d->causal = flags[1];
    if (flags.size() >= 6) d->local = flags[2];
  } else if (name.leaf == "flash_fwd_splitkv_kernel") {
    d->part = Part::forward;
    if (!flags.empty()) d->causal = flags[0];
    if (flags.size() >= 6) d->local = flags[1];
  } else if (contains(name.leaf, "dq_dk_dv_loop")) {
    d->part = Part::backward;
    if (flags.size() > 1) d->dropout = flags[0], d->causal = flags[1];
    if (flags.size() >= 6) d->local = flags[2];
  } else if (contains(name.leaf, "dot_do_o")) {
    d->part = Part::dot_do_o;
  } else if (contains(name.leaf, "convert_d")) {
    d->part = Part::convert_dq;
  } else if (contains(name.leaf, "combine")) {
    d->part = Part::combine;
  } else {
    d->part = Part::other;
  }
  return d;
}

}  // namespace maya::decode
