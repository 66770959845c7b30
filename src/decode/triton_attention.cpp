// Attention that engines write in Triton: vLLM's unified kernel for paged caches
// (kernel_unified_attention_2d, and _3d, which splits contexts), and the decoding kernels with
// which vLLM and SGLang also compute multi-head latent attention (_fwd_grouped_kernel_stage1).
//
// Their loops go by lengths that lie in memory, so their code alone tells little. Arguments are
// told by their names (triton_source.h); heads and windows are constants of the code.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "decode/lengths.h"
#include "decode/serving_families.h"
#include "decode/triton_source.h"

namespace maya::decode {
namespace {

// The number that a constant of the text stands for: "%c8_i32" or "%cst_3", which the code defines.
std::optional<std::int64_t> constant(std::string_view text, std::string_view name) {
  const std::string definition = "    " + std::string(name) + " = arith.constant ";
  std::size_t at = text.find(definition);
  if (at == text.npos) return std::nullopt;
  at += definition.size();
  constexpr std::string_view dense = "dense<";
  if (starts_with(text.substr(at), dense)) at += dense.size();
  return std::atoll(std::string(text.substr(at, 20)).c_str());
}

std::string_view word_at(std::string_view line, std::size_t at) {
  return line.substr(at, line.find_first_of(" ,:", at) - at);
}

// By how much a value is multiplied: "… = arith.muli %kv_head_idx, %c8_i32 : i32".
std::int64_t multiplier(std::string_view text, std::string_view value) {
  const std::string mark = " = arith.muli " + std::string(value) + ", ";
  const std::size_t at = text.find(mark);
  if (at == text.npos) return 1;
  return constant(text, word_at(text, at + mark.size())).value_or(1);
}

// What constants add up to in the lines that make a value: "%name_3 = arith.subi %…, %c128_i32".
std::int64_t added(std::string_view text, std::string_view value) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (!starts_with(line, value)) continue;
    const bool plus = contains(line, " = arith.addi "), minus = contains(line, " = arith.subi ");
    const std::size_t comma = line.find(", %");
    if ((!plus && !minus) || comma == line.npos) continue;
    if (const auto number = constant(text, word_at(line, comma + 2)))
      sum += plus ? *number : -*number;
  }
  return sum;
}

class TritonAttention : public Decoder {
 public:
  TritonSource source;
  bool unified{};
  std::int64_t queries_per_key{1}, window{};

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    Attention w;
    const bool known = shape(a, w) && lengths(a, w);
    const std::int64_t words[] = {known,         w.batch,    w.seq_q,    w.seq_k,
                                  w.heads,       w.kv_heads, w.head_dim, w.head_dim_v,
                                  w.short_batch, w.short_q,  w.short_k};
    if (capacity < sizeof words) return 0;
    std::memcpy(out, words, sizeof words);
    return sizeof words;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    Attention w;
    d.recognised = shape(a, w) && lengths(a, w);
    d.op.work = w;
    if (!d.recognised) d.op.work = OtherKernel{};
    for (std::string_view name : results) {
      const std::int64_t rows = w.batch * w.seq_q + w.short_batch * w.short_q;
      if (const std::uint64_t address = source.pointer(a, name))
        write(d, address, std::max<std::int64_t>(1, rows) * w.heads * w.head_dim_v * 4);
    }
    return d;
  }

  std::vector<bool> read_only() const override {
    return source.none_of({std::begin(results), std::end(results)});
  }

 private:
  static constexpr std::string_view results[] = {
      "output_ptr", "segm_output_ptr", "segm_max_ptr", "segm_expsum_ptr", "Att_Out", "Att_Lse"};

  bool shape(const Arguments& a, Attention& w) const {
    w.kernel = AttentionKernel::other;
    w.varlen = w.causal = true;
    w.window = window;
    if (unified) {
      w.dtype = source.type("query_ptr");
      w.head_dim = w.head_dim_v = source.integer(a, "query_stride_1");
      w.kv_heads = static_cast<std::int64_t>(a.grid(1));
      w.heads = w.kv_heads * queries_per_key;
    } else {
      w.dtype = source.type("Q");
      w.head_dim = source.integer(a, "stride_qh");
      // Partial results have their sums behind them, or in a list of their own.
      w.head_dim_v = source.integer(a, "stride_mid_os") - (source.has("Att_Lse") ? 0 : 1);
      const std::int64_t key = source.integer(a, "stride_buf_kh");
      w.kv_heads = key > 0 ? source.integer(a, "stride_buf_kbs") / key : 0;
      w.heads = w.head_dim > 0 ? source.integer(a, "stride_qbs") / w.head_dim : 0;
    }
    constexpr std::int64_t widest = 1024, most_heads = 4096;
    return w.head_dim >= 1 && w.head_dim <= widest && w.head_dim_v >= 1 &&
           w.head_dim_v <= w.head_dim && w.kv_heads >= 1 && w.heads >= w.kv_heads &&
           w.heads <= most_heads;
  }

  bool lengths(const Arguments& a, Attention& w) const {
    const Launch& launch = a.launch();
    if (launch.known == nullptr) return false;
    const std::int64_t batch =
        unified ? source.integer(a, "num_seqs") : static_cast<std::int64_t>(a.grid(0));
    constexpr std::int64_t most = 1 << 16;
    if (batch < 1 || batch > most) return false;
    auto list = [&](std::string_view name, std::int64_t count) {
      return static_cast<const std::int32_t*>(
          launch.known(source.pointer(a, name), static_cast<std::uint64_t>(count) * 4));
    };
    std::vector<std::int32_t> starts(static_cast<std::size_t>(batch) + 1);
    std::iota(starts.begin(), starts.end(), 0);  // a token for each sequence
    std::vector<std::int32_t> keys(static_cast<std::size_t>(batch));
    if (unified) {
      const auto* from = list("query_start_len_ptr", batch + 1);
      if (from == nullptr) return false;
      std::copy(from, from + batch + 1, starts.begin());
    }
    if (source.has("kv_indptr")) {
      const auto* ends = list("kv_indptr", batch + 1);
      if (ends == nullptr) return false;
      for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = ends[i + 1] - ends[i];
    } else {
      const auto* used = list(unified ? "seq_lens_ptr" : "B_Seqlen", batch);
      if (used == nullptr) return false;
      std::copy(used, used + batch, keys.begin());
    }
    const auto typical = typical_lengths(starts.data(), keys.data(), batch, true, window);
    if (!typical) return false;
    w.batch = typical->batch, w.seq_q = typical->seq_q, w.seq_k = typical->seq_k;
    w.short_batch = typical->short_batch, w.short_q = typical->short_q;
    w.short_k = typical->short_k;
    return true;
  }
};

}  // namespace

Made prepare_triton_attention(const Kernel& kernel, const Name& name) {
  const bool unified = starts_with(kernel.mangled, "kernel_unified_attention");
  const bool stage =
      kernel.mangled == "_fwd_grouped_kernel_stage1" || kernel.mangled == "_fwd_kernel_stage1";
  if (!unified && !stage) return nullptr;
  auto source = triton_source(kernel);
  auto has = [&](std::string_view parameter) { return source->has(parameter); };
  if (!source || !(unified ? has("query_start_len_ptr") && has("seq_lens_ptr")
                           : has("Att_Out") && (has("B_Seqlen") || has("kv_indptr"))))
    return prepare_unknown(kernel, name);
  auto d = std::make_unique<TritonAttention>();
  d->unified = unified;
  if (unified) {
    d->queries_per_key = std::max<std::int64_t>(1, multiplier(source->text, "%kv_head_idx"));
    // first_allowed_key = context_len + first query - window + 1
    const std::int64_t back = added(source->text, "%first_allowed_key");
    if (back < 0) d->window = 1 - back;
  }
  d->source = *std::move(source);
  d->source.text.clear();
  return d;
}

}  // namespace maya::decode
