// FlashAttention 3.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "decode/lengths.h"
#include "decode/rule.h"

namespace maya::decode {
namespace {

// FlashAttention 3: cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<…>>>(Params).
// The main loop's parameters hold cute shapes (seqlen, head_dim, heads, batch) of Q and of K one
// after another.
class Flash3 : public Decoder {
 public:
  bool backward{}, causal{}, local{}, varlen{};
  DType dtype{DType::bf16};
  int head_dim{128}, head_dim_v{128};
  bool helper{};   // pre- and post-processing of the backward pass
  bool combine{};  // of partial results

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    std::int64_t s[11]{};  // short ones last, then the window
    if (capacity < sizeof s || !(combine ? partials(a, s) > 0 : shapes(a, s))) return 0;
    if (!combine) {
      const Window seen = window(a);
      s[9] = seen.left, s[10] = seen.right;
      use_lengths(a, seen, s);
    }
    std::memcpy(out, s, sizeof s);
    return sizeof s;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    std::int64_t s[9]{};
    if (combine) return combined(launch);
    bool found = shapes(a, s);
    const Window seen = found ? window(a) : Window{};
    if (local && !seen.found) found = false;
    if (!use_lengths(a, seen, s)) {
      // Pages alone do not tell how many keys there are: the queries look at each other, at least.
      // Packed sequences of unknown lengths: as if they were one.
      if (paged(a)) s[4] = std::max(s[0], s[4]), found = false;
      if (varlen && launch.known != nullptr) found = false;
    }
    if (helper) {
      Pointwise work;
      work.elements = s[0] * s[1] * s[2] * s[3];
      work.inputs = 2;
      work.bytes_read = work.elements * 4;
      work.bytes_written = work.elements * 4;
      work.dtype = dtype;
      d.op.work = work;
      d.recognised = found || !launch.arguments;
      return d;
    }
    Attention work;
    work.seq_q = s[0];
    work.head_dim = s[1] ? s[1] : head_dim;
    work.head_dim_v = head_dim_v == head_dim ? work.head_dim : head_dim_v;
    work.heads = s[2];
    work.batch = s[3];
    work.seq_k = s[4];
    work.kv_heads = s[5];
    work.short_batch = s[6], work.short_q = s[7], work.short_k = s[8];
    work.dtype = dtype;
    work.causal = seen.causal(causal);
    work.window = seen.keys();
    work.varlen = varlen;
    work.kernel = AttentionKernel::flash3;
    work.direction = backward ? Direction::backward : Direction::forward;
    d.op.work = work;
    if (const std::int32_t place = lists_at_.load(std::memory_order_relaxed); place >= 0) {
      auto list = [&](std::size_t i) {
        return a.pointer(0, static_cast<std::size_t>(place) + 8 * i);
      };
      writes_all_but(launch, {list(0), list(1), list(2), list(3), list(4)}, d);
    }
    d.recognised = found || !launch.arguments;
    return d;
  }

  // How many parts there are of each sequence the kernel before decides on the device: several
  // where few sequences leave SMs without work, and the parts are small then; else one, and this
  // kernel has nothing to do. So the result is read and written once.
  Decoded combined(const Launch& launch) const {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    std::int64_t s[6]{};
    const std::size_t at = partials(a, s);
    d.recognised = at > 0 || !launch.arguments;
    Pointwise work;
    const std::int64_t rows = s[0] * s[3] * s[4];
    work.elements = rows * s[1];
    work.bytes_read = work.elements * 4;
    work.bytes_written = work.elements * whole_bytes(dtype);
    work.dtype = dtype;
    if (at > 0) {
      // Behind the shape: four strides; pointer, shape and three strides of the partial sums; then
      // the result, three strides, and its sums.
      write(d, a.pointer(0, at + 104), work.bytes_written);
      write(d, a.pointer(0, at + 136), rows * 4);
    }
    d.op.work = work;
    return d;
  }

 private:
  // { [int batch;] partial results; shape (queries, head size, splits, heads, batch); … }. Where
  // the shape begins; 0: not there.
  static std::size_t partials(const Arguments& a, std::int64_t* s) {
    for (std::size_t at : {8, 16}) {
      bool good = a.pointer(0, at - 8) > 0xffff;
      for (std::size_t i = 0; i < 5 && good; ++i) {
        s[i] = a.at<std::int32_t>(0, at + 4 * i);
        good = s[i] >= 1;
      }
      if (good && s[1] <= 512 && s[2] <= 512 && s[3] <= 1024) return at;
    }
    return 0;
  }

  // How far a query sees before and behind itself, where the kernel was compiled for that.
  struct Window {
    std::int32_t left{}, right{};
    bool found{};
    bool causal(bool compiled) const { return compiled || (found && right == 0); }
    std::int64_t keys() const { return found ? std::int64_t{1} + left + right : 0; }
  };

  mutable std::atomic<std::int64_t> at_{-1};         // position of Q's shape and of K's, packed
  mutable std::atomic<std::int32_t> lists_at_{-1};   // position of the lists of lengths
  mutable std::atomic<std::int32_t> window_at_{-1};  // position of the window

  Window window(const Arguments& a) const {
    Window w;
    if (!local) return w;
    const std::size_t total = a.size(0);
    std::int32_t place = window_at_.load(std::memory_order_relaxed);
    const std::int64_t known = at_.load(std::memory_order_relaxed);
    // Behind K's shape.
    for (std::size_t at = static_cast<std::size_t>(known & 0xffffffff) + 16;
         place < 0 && known >= 0 && at + 8 <= total; at += 4)
      if (is_window(a, at, total)) place = static_cast<std::int32_t>(at);
    if (place < 0) return w;
    window_at_.store(place, std::memory_order_relaxed);
    const auto at = static_cast<std::size_t>(place);
    w.left = a.at<std::int32_t>(0, at), w.right = a.at<std::int32_t>(0, at + 4);
    w.found = w.left >= 0 && w.right >= 0;
    return w;
  }

  // Two numbers, and what stands around them. Backward: the scale, and the scale for powers of two,
  // before them. Forward: the lists of lengths behind them, and in between, by version, a divisor
  // for chunks of three words (0, or 1 for none), the number of splits, the list of places in the
  // cache.
  bool is_window(const Arguments& a, std::size_t at, std::size_t total) const {
    const auto word = [&](std::size_t i) { return a.at<std::int32_t>(0, at + 4 * i); };
    if (word(0) < 1 || word(1) < 0) return false;
    if (backward) {
      const float scale = a.at<float>(0, at - 8), base_2 = a.at<float>(0, at - 4);
      return scale > 0 && scale < 64 && std::fabs(base_2 - scale * 1.442695f) < 0.01f * base_2;
    }
    const auto address = [&](std::size_t i) {
      const std::uint64_t pointer = a.pointer(0, at + 4 * i);
      return pointer == 0 || (pointer > 0xffff && pointer < std::uint64_t{1} << 48);
    };
    const bool no_chunks = (word(2) == 0 || word(2) == 1) && word(3) == 0 && word(4) == 0;
    const auto splits = [&](std::size_t i) { return word(i) >= 1 && word(i) <= 256; };
    // Words from the window to the lists, and whether what is between them can be that.
    const std::pair<std::size_t, bool> versions[] = {
        {9, no_chunks && splits(5) && address(7)},
        {7, splits(3) && address(5)},
        {5, no_chunks || (splits(2) && address(3))},
    };
    for (const auto& [lists, between] : versions) {
      const std::size_t begin = at + 4 * lists;
      if (!between || begin % 8 != 0 || begin + 40 > total) continue;
      bool good = true, any = false;
      for (std::size_t i = 0; i < 5; ++i)
        good &= address(lists + 2 * i), any |= a.pointer(0, begin + 8 * i) != 0;
      if (good && any == varlen) return true;
    }
    return false;
  }

  // The batch of K's shape is not Q's.
  bool paged(const Arguments& a) const {
    const std::int64_t known = at_.load(std::memory_order_relaxed);
    std::int64_t q[4], k[4];
    return known >= 0 && shape_at(a, static_cast<std::size_t>(known >> 32), q) &&
           shape_at(a, static_cast<std::size_t>(known & 0xffffffff), k) && q[3] != k[3];
  }

  // Behind the shapes stand cu_seqlens_q, cu_seqlens_k, cu_seqlens_k_new, seqused_q, seqused_k.
  // Where the first is known, it is recognised: it ends with the number of queries, Q's length. In
  // a CUDA graph, which is captured once for many batches, Q is longer: the place is known by then.
  bool use_lengths(const Arguments& a, const Window& seen, std::int64_t* s) const {
    const std::size_t total = a.size(0);
    if (a.launch().known == nullptr || s[3] != 1) return false;
    const std::int32_t place = lists_at_.load(std::memory_order_relaxed);
    if (place >= 0) {
      const auto at = static_cast<std::size_t>(place);
      return lengths_at(a, at, seen, false, s) || lengths_at(a, at, seen, true, s);
    }
    for (std::size_t at = 0; at + 40 <= total; at += 8) {
      if (!lengths_at(a, at, seen, false, s)) continue;
      lists_at_.store(static_cast<std::int32_t>(at), std::memory_order_relaxed);
      return true;
    }
    return false;
  }

  // Keys in use are listed where they lie in pages; packed sequences have starts of their keys.
  bool lengths_at(const Arguments& a, std::size_t at, const Window& seen, bool padded,
                  std::int64_t* s) const {
    const Launch& launch = a.launch();
    const std::uint64_t starts_at = a.pointer(0, at), key_starts_at = a.pointer(0, at + 8);
    const std::uint64_t keys_at = a.pointer(0, at + (backward ? 24 : 32));
    const std::int64_t batch = sequences_in(launch, starts_at, s[0], padded);
    if (batch == 0) return false;
    const auto count = static_cast<std::uint64_t>(batch);
    auto list = [&](std::uint64_t address, std::uint64_t entries) {
      return static_cast<const std::int32_t*>(address > 0xffff ? launch.known(address, entries * 4)
                                                               : nullptr);
    };
    const std::int32_t* starts = list(starts_at, count + 1);
    const std::int32_t* keys = list(keys_at, count);
    std::vector<std::int32_t> packed;
    if (keys == nullptr && keys_at <= 0xffff) {
      const std::int32_t* key_starts = list(key_starts_at, count + 1);
      if (key_starts == nullptr || key_starts[0] != 0) return false;
      for (std::uint64_t i = 0; i < count; ++i) packed.push_back(key_starts[i + 1] - key_starts[i]);
      keys = packed.data();
    }
    if (starts == nullptr || keys == nullptr) return false;
    const auto lengths = typical_lengths(starts, keys, batch, seen.causal(causal), seen.keys());
    if (!lengths) return false;
    s[0] = lengths->seq_q, s[3] = lengths->batch, s[4] = lengths->seq_k;
    s[6] = lengths->short_batch, s[7] = lengths->short_q, s[8] = lengths->short_k;
    return true;
  }

  bool shape_at(const Arguments& a, std::size_t at, std::int64_t* s) const {
    for (int i = 0; i < 4; ++i) {
      s[i] = a.at<std::int32_t>(0, at + 4 * i);
      if (s[i] < 1) return false;
    }
    return s[1] <= head_dim && s[1] > head_dim - 64 && s[2] <= 1024 && s[0] <= (1 << 24) &&
           s[3] <= (1 << 20);
  }
  bool shapes(const Arguments& a, std::int64_t* out) const {
    std::size_t total = a.size(0);
    if (!a.raw(0, 0, total)) return false;
    std::int64_t q[4], k[4];
    std::int64_t known = at_.load(std::memory_order_relaxed);
    std::size_t qa = static_cast<std::size_t>(known >> 32),
                ka = static_cast<std::size_t>(known & 0xffffffff);
    if (!(known >= 0 && shape_at(a, qa, q) && shape_at(a, ka, k))) {
      // The first two shapes with equal head size and batch, heads of K dividing those of Q.
      qa = total;
      bool found = false;
      for (std::size_t at = 0; at + 16 <= total && !found; at += 4) {
        if (!shape_at(a, at, q)) continue;
        for (std::size_t next = at + 16; next + 16 <= total && next < at + 768; next += 4) {
          if (!shape_at(a, next, k) || k[1] != q[1] || q[2] % k[2]) continue;
          // Keys in pages have the page's length and the number of pages in place of the batch's.
          if (k[3] != q[3] && (q[3] != 1 || backward)) continue;
          qa = at, ka = next, found = true;
          break;
        }
      }
      if (!found) return false;
      at_.store(static_cast<std::int64_t>(qa << 32 | ka), std::memory_order_relaxed);
    }
    for (int i = 0; i < 4; ++i) out[i] = q[i];
    out[4] = k[0], out[5] = k[2];
    return true;
  }
};

}  // namespace

Made prepare_flash3(const Kernel& kernel, const Name&) {
  const std::string& text = kernel.demangled;
  if (!contains(text, "flash::FlashAttn") && !contains(text, "flash::enable_sm")) return nullptr;
  auto d = std::make_unique<Flash3>();
  d->backward = contains(text, "FlashAttnBwd");
  d->helper = contains(text, "BwdPreprocess") || contains(text, "BwdPostprocess");
  d->combine = contains(text, "FwdCombine");
  d->dtype = contains(text, "e4m3")     ? DType::f8e4m3
             : contains(text, "half_t") ? DType::f16
                                        : DType::bf16;
  // CollectiveMainloopFwdSm90<Stages, Cluster, tuple<C<M>, C<N>, C<D>>, DimV, Element, Acc, Arch,
  // causal, local …>
  std::size_t at = text.find("CollectiveMainloop");
  if (at != std::string::npos) {
    std::size_t open = text.find('<', at);
    if (open != std::string::npos) {
      int depth = 0;
      std::size_t end = text.size();
      for (std::size_t i = open; i < text.size(); ++i) {
        if (text[i] == '<') ++depth;
        if (text[i] == '>' && --depth == 0) {
          end = i;
          break;
        }
      }
      std::vector<std::string> t =
          split_arguments(std::string_view(text).substr(open + 1, end - open - 1));
      for (const std::string& s : t) {
        if (!starts_with(s, "cute::tuple<")) continue;
        std::size_t last = s.rfind("C<");
        if (last != std::string::npos)
          d->head_dim = d->head_dim_v = std::atoi(s.c_str() + last + 2);
      }
      std::vector<bool> flags;
      for (const std::string& s : t)
        if (s == "true" || s == "false") flags.push_back(s == "true");
      if (flags.size() > 1) d->causal = flags[0], d->local = flags[1];
      if (flags.size() > 3) d->varlen = flags[3];
    }
  }
  return d;
}

}  // namespace maya::decode
