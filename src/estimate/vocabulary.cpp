#include "estimate/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "op/text.h"

namespace maya::estimate {
namespace {

// Takes keys out of the map; remembers the first thing that went wrong.
class Reader {
 public:
  Reader(std::string_view op, Keys& keys) : op_(op), keys_(keys) {}

  std::optional<std::string> word(std::initializer_list<std::string_view> names) {
    for (std::string_view name : names) {
      auto it = keys_.find(name);
      if (it == keys_.end() || it->second.empty()) continue;
      std::string value = it->second;
      keys_.erase(it);
      return value;
    }
    return std::nullopt;
  }
  // A size: whole, positive; 1e6 and 4096.0 are sizes too.
  std::optional<std::int64_t> size(std::initializer_list<std::string_view> names) {
    auto value = word(names);
    if (!value) return std::nullopt;
    double number{};
    const char* const last = value->data() + value->size();
    const auto [end, code] = std::from_chars(value->data(), last, number);
    if (code != std::errc{} || end != last || number < 0 || number != std::floor(number) ||
        number > 9e17) {
      fail(std::string(*names.begin()) + "=" + *value + ": expected a whole number, not negative");
      return std::nullopt;
    }
    return static_cast<std::int64_t>(number);
  }
  std::int64_t need(std::initializer_list<std::string_view> names) {
    auto value = size(names);
    if (!value || *value <= 0) fail("needs " + std::string(*names.begin()) + "=, a positive size");
    return value.value_or(1);
  }
  std::int64_t take(std::initializer_list<std::string_view> names, std::int64_t fallback) {
    return size(names).value_or(fallback);
  }
  bool flag(std::initializer_list<std::string_view> names, bool fallback = false) {
    auto value = word(names);
    if (!value) return fallback;
    return *value == "1" || *value == "true" || *value == "yes" || *value == "True";
  }
  DType dtype(DType fallback = DType::f32) {
    auto value = word({"dtype", "type", "precision"});
    if (!value) return fallback;
    auto parsed =
        parse_dtype(value->starts_with("torch.") ? std::string_view(*value).substr(6) : *value);
    if (!parsed) fail("dtype=" + *value + ": expected a type such as f16, bf16, f32, tf32, fp8");
    return parsed.value_or(fallback);
  }
  // A type of a product, with the names of quantization schemes.
  struct Quantized quantized(DType fallback);
  // library=sglang: whose kernels. Empty: today's default.
  std::string library(std::string_view scheme) {
    auto value = word({"library", "framework"});
    if (!value && scheme.empty()) return "";
    return value.value_or("any") + "::" + std::string(scheme);
  }
  Direction direction() {
    auto value = word({"direction", "pass", "mode"});
    if (!value || *value == "fwd" || *value == "forward") return Direction::forward;
    if (*value == "bwd" || *value == "backward") return Direction::backward;
    if (*value == "dgrad" || *value == "data_gradient") return Direction::data_gradient;
    if (*value == "wgrad" || *value == "weight_gradient") return Direction::weight_gradient;
    fail("direction=" + *value + ": expected forward, backward, data_gradient or weight_gradient");
    return Direction::forward;
  }
  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = std::string(op_) + ": " + what;
  }
  Result<Op> done(Work work, std::string name = "") {
    if (!problem_.empty()) return Error{problem_ + "; see `maya estimate --help`"};
    Op op;
    op.work = work;
    op.name = std::move(name);
    return op;
  }

 private:
  std::string_view op_;
  Keys& keys_;
  std::string problem_;
};

struct Quantized {
  DType activations, weights;
  std::string_view name;  // where types do not say it
};

Quantized Reader::quantized(DType fallback) {
  constexpr std::pair<std::string_view, Quantized> schemes[] = {
      {"fp8_block", {DType::f8e4m3, DType::f8e4m3, "fp8_block"}},
      {"nvfp4", {DType::f4, DType::f4, ""}},
      {"int8", {DType::i8, DType::i8, ""}},
      {"sq", {DType::i8, DType::i8, ""}},
      {"int8_wo", {DType::bf16, DType::i8, ""}},
      {"int4_wo", {DType::bf16, DType::f4, ""}},
      {"w4a16_mxfp4", {DType::bf16, DType::f4, ""}},
      {"w4a8_mxfp4_mxfp8", {DType::f8e4m3, DType::f4, ""}}};
  for (std::string_view key : {"dtype", "type", "precision", "gemm_dtype", "moe_dtype"}) {
    auto it = keys_.find(key);
    if (it == keys_.end()) continue;
    for (const auto& [scheme, types] : schemes)
      if (it->second == scheme) {
        keys_.erase(it);
        return types;
      }
  }
  const DType type = dtype(fallback);
  return {type, type, ""};
}

// f16 figures in the literature come from inference engines, bf16 and f32 ones from training.
bool vllm(Reader& r, DType type) {
  auto provider = r.word({"provider"});
  return provider ? *provider == "vllm" : type == DType::f16;
}

Result<Op> gemm(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Gemm g;
  // Row-major C[m×n] = A[m×k]·B[k×n] is column-major Cᵀ[n×m]: BLAS sees m and n exchanged.
  g.n = r.need({"m", "tokens", "rows"});
  g.m = r.need({"n", "out_features"});
  g.k = r.need({"k", "in_features"});
  g.batch = r.take({"batch", "b"}, 1);
  const Quantized quantized = r.quantized(DType::f16);
  const DType type = quantized.activations;
  g.a = quantized.weights, g.b = g.d = type;
  if (bytes(type) < 2) g.d = DType::bf16;
  g.compute = type;
  if (type == DType::tf32) g.a = g.b = g.d = DType::f32;
  if (auto c = r.word({"compute"})) g.compute = parse_dtype(*c).value_or(type);
  if (auto d = r.word({"out_dtype"})) g.d = parse_dtype(*d).value_or(g.d);
  g.transpose_a = r.flag({"transpose_b", "trans_b"}, name == "linear");
  g.transpose_b = r.flag({"transpose_a", "trans_a"});
  g.accumulate = r.flag({"accumulate"});
  g.groups = r.take({"groups"}, 1);
  if (auto e = r.word({"epilogue"}))
    g.epilogue = parse_enum<Epilogue>(*e).value_or(Epilogue::other);
  return r.done(g, r.library(quantized.name));
}

Result<Op> conv(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Convolution c;
  c.n = r.need({"n", "batch", "b"});
  c.c = r.need({"c", "in_channels", "input_channel"});
  c.k = r.need({"k", "out_channels", "output_channel"});
  const std::int64_t square = r.take({"size", "input_size"}, 0);
  c.h = r.take({"h", "height"}, name == "conv1d" ? 1 : square);
  c.w = r.take({"w", "width", "length"}, square);
  c.d = r.take({"d", "depth"}, 1);
  if (c.w <= 0 || c.h <= 0) r.fail("needs h= and w=, the input size");
  auto each = [&](std::initializer_list<std::string_view> all, std::string_view d,
                  std::string_view h, std::string_view w, std::int32_t fallback) {
    auto common = static_cast<std::int32_t>(r.take(all, fallback));
    bool has_h = c.h > 1 || name != "conv1d", has_d = c.d > 1;
    return std::array<std::int32_t, 3>{static_cast<std::int32_t>(r.take({d}, has_d ? common
                                                                             : fallback == 0 ? 0
                                                                                             : 1)),
                                       static_cast<std::int32_t>(r.take({h}, has_h ? common
                                                                             : fallback == 0 ? 0
                                                                                             : 1)),
                                       static_cast<std::int32_t>(r.take({w}, common))};
  };
  auto kernel = each({"kernel_size", "kernel", "r", "kernel_szie"}, "kd", "kh", "kw", 1);
  auto stride = each({"stride"}, "stride_d", "stride_h", "stride_w", 1);
  auto pad = each({"padding", "pad"}, "pad_d", "pad_h", "pad_w", 0);
  auto dilation = each({"dilation"}, "dilation_d", "dilation_h", "dilation_w", 1);
  c.kd = kernel[0], c.kh = kernel[1], c.kw = kernel[2];
  c.stride_d = stride[0], c.stride_h = stride[1], c.stride_w = stride[2];
  c.pad_d = pad[0], c.pad_h = pad[1], c.pad_w = pad[2];
  c.dilation_d = dilation[0], c.dilation_h = dilation[1], c.dilation_w = dilation[2];
  if (c.stride_h < 1 || c.stride_w < 1 || c.stride_d < 1) r.fail("a stride is at least 1");
  c.groups = static_cast<std::int32_t>(r.take({"groups"}, 1));
  c.dtype = r.dtype(DType::f32);
  c.compute = c.dtype;
  if (c.dtype == DType::tf32) c.dtype = DType::f32;
  if (auto l = r.word({"layout", "memory_format"}))
    c.layout = *l == "nhwc" || *l == "NHWC" || *l == "channels_last" ? Layout::channels_last
                                                                     : Layout::channels_first;
  c.direction = r.direction();
  if (c.out_w() <= 0 || c.out_h() <= 0 || c.out_d() <= 0)
    r.fail("the kernel is larger than the padded input: no output");
  return r.done(c);
}

Result<Op> attention(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Attention a;
  a.batch = r.take({"batch", "b"}, 1);
  a.heads = r.need({"heads", "n_heads", "num_heads", "h"});
  a.kv_heads = r.take({"kv_heads", "num_kv_heads", "n_kv_heads"}, a.heads);
  const std::int64_t seq = r.take({"seq", "seqlen", "seq_len", "s"}, 0);
  a.seq_q = r.take({"seq_q"}, seq);
  a.seq_k = r.take({"seq_k", "seq_kv"}, seq > 0 ? seq : a.seq_q);
  if (a.seq_q <= 0 || a.seq_k <= 0) r.fail("needs seq= (or seq_q= and seq_k=)");
  a.head_dim = r.need({"head_dim", "d", "headdim"});
  a.head_dim_v = r.take({"head_dim_v"}, a.head_dim);
  a.dtype = r.dtype(DType::f16);
  a.causal = r.flag({"causal"});
  a.dropout = r.flag({"dropout"});
  a.window = r.take({"window"}, 0);
  a.short_batch = r.take({"short_batch"}, 0);
  if (a.short_batch > 0) a.short_q = r.take({"short_q"}, 1), a.short_k = r.need({"short_k"});
  a.direction = r.direction();
  bool named = false;
  if (auto k = r.word({"kernel", "impl"})) {
    auto parsed = parse_enum<AttentionKernel>(*k);
    if (!parsed && *k == "xformers") parsed = AttentionKernel::memory_efficient;
    a.kernel = parsed.value_or(AttentionKernel::other);
    named = true;
  }
  std::string_view scheme;
  if (auto c = r.word({"kv_dtype", "kv_cache_dtype", "cache_dtype"}))
    if (auto type = parse_dtype(*c); type && bytes(*type) == 1) scheme = "cache_fp8";
  // Unless a kernel is named: what a GPU's current libraries take.
  std::string library = r.library(scheme);
  return r.done(a, library.empty() && !named ? "any::" + std::string(scheme) : library);
}

Result<Op> experts(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  const std::int64_t tokens = r.need({"tokens", "num_tokens"});
  const std::int64_t hidden = r.need({"hidden", "hidden_size"});
  const std::int64_t inner = r.need({"inner", "inter", "inter_size", "intermediate_size"});
  const std::int64_t experts = r.need({"experts", "num_experts"});
  const std::int64_t top = r.need({"top", "topk", "top_k"});
  const std::int64_t tp = std::max<std::int64_t>(1, r.take({"tp", "moe_tp_size"}, 1));
  const std::int64_t ep = std::max<std::int64_t>(1, r.take({"ep", "moe_ep_size"}, 1));
  const Quantized quantized = r.quantized(DType::bf16);
  // A kernel, or the engine's name for one.
  const std::string kernel = r.word({"kernel", "kernel_source"}).value_or("");
  const int matrices = r.flag({"gated"}, kernel.find("nongated") == kernel.npos) ? 3 : 2;
  // As the tables call it: balanced, power_law_1.2. Or random: each expert is equally likely.
  std::string skew = "0";
  if (auto d = r.word({"distribution"}))
    skew = d->starts_with("power_law_") ? d->substr(std::string_view("power_law_").size())
           : *d == "random"             ? "-1"
                                        : "0";
  Gemm g;
  g.groups = std::max<std::int64_t>(1, experts / ep);
  g.m = std::max<std::int64_t>(1, tokens * top / ep);
  g.n = std::max<std::int64_t>(1, matrices * inner / tp);
  g.k = hidden;
  g.a = g.compute = quantized.activations, g.b = quantized.weights, g.d = DType::bf16;
  std::string scheme = quantized.name.empty() ? "" : std::string(quantized.name) + " ";
  scheme += "moe tokens=" + std::to_string(tokens) + " experts=" + std::to_string(experts) +
            " top=" + std::to_string(top) + " matrices=" + std::to_string(matrices) +
            " skew=" + skew;
  if (!kernel.empty() && kernel.find(' ') == kernel.npos) scheme += " kernel=" + kernel;
  return r.done(g, r.library(scheme));
}

std::int64_t rows_of(Reader& r) { return r.need({"rows", "tokens", "num_tokens", "m", "b", "bt"}); }
std::int64_t cols_of(Reader& r) {
  return r.need({"cols", "hidden", "h", "n", "features", "dim", "v", "vocab"});
}

Result<Op> norm(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Normalization n;
  n.kind = name.starts_with("rms") ? NormKind::rms : NormKind::layer;
  n.rows = rows_of(r), n.cols = cols_of(r);
  n.dtype = r.dtype(DType::f32);
  n.direction = r.direction();
  n.fused_add = r.flag({"fused_add"});
  return r.done(n, n.kind == NormKind::rms && n.direction == Direction::forward && vllm(r, n.dtype)
                       ? "vllm::rms_norm"
                       : "");
}

Result<Op> batch_norm(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Normalization n;
  n.kind = name.starts_with("group") ? NormKind::group : NormKind::batch;
  const std::int64_t batch = r.need({"n", "batch", "b"}), channels = r.need({"c", "channels"});
  const std::int64_t square = r.take({"size", "input_size"}, 1);
  const std::int64_t points = r.take({"h", "height"}, square) * r.take({"w", "width"}, square);
  if (n.kind == NormKind::group) {
    const std::int64_t groups = std::max<std::int64_t>(1, r.take({"groups"}, 32));
    n.rows = batch * groups, n.cols = channels * points / groups;
  } else {
    n.rows = channels, n.cols = batch * points;
  }
  n.dtype = r.dtype(DType::f32);
  n.direction = r.direction();
  if (auto l = r.word({"layout", "memory_format"}))
    n.channels_last = *l == "nhwc" || *l == "channels_last";
  return r.done(n);
}

Result<Op> softmax(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Softmax s;
  s.rows = rows_of(r), s.cols = cols_of(r);
  s.in = s.out = r.dtype(DType::f32);
  s.direction = r.direction();
  s.log = name == "log_softmax";
  return r.done(s);
}

Result<Op> cross_entropy(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  CrossEntropy c;
  c.rows = rows_of(r), c.cols = cols_of(r);
  c.dtype = r.dtype(DType::f32);
  c.direction = r.direction();
  c.fused = r.flag({"fused"}, true);
  return r.done(c);
}

// What one element costs beside its bytes, in plain additions.
int weight(std::string_view name) {
  if (name == "pow" || name == "tanh" || name == "gelu" || name == "sigmoid") return 10;
  if (name == "div" || name == "silu" || name == "exp" || name == "sqrt") return 6;
  return 1;
}

Result<Op> pointwise(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Pointwise p;
  auto elements = r.size({"elements", "numel"});
  p.elements = elements ? *elements : rows_of(r) * cols_of(r);
  const bool two = name == "add" || name == "mul" || name == "sub" || name == "div";
  p.inputs = static_cast<std::int32_t>(r.take({"inputs"}, two ? 2 : 1));
  p.outputs = static_cast<std::int32_t>(r.take({"outputs"}, 1));
  p.dtype = r.dtype(DType::f32);
  const double size = bytes(p.dtype);
  p.bytes_read = r.take(
      {"bytes_read"}, static_cast<std::int64_t>(static_cast<double>(p.elements * p.inputs) * size));
  p.bytes_written =
      r.take({"bytes_written"},
             static_cast<std::int64_t>(static_cast<double>(p.elements * p.outputs) * size));
  p.flops_per_element = static_cast<std::int32_t>(r.take({"flops_per_element"}, weight(name)));
  p.strided = r.flag({"strided"});
  return r.done(p);
}

Result<Op> swiglu(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Pointwise p;
  p.elements =
      rows_of(r) * r.need({"cols", "intermediate", "intermediate_size", "n", "hidden", "h"});
  p.dtype = r.dtype(DType::bf16);
  const bool backward = r.direction() != Direction::forward;
  p.inputs = backward ? 3 : 2, p.outputs = backward ? 2 : 1;
  const double size = static_cast<double>(p.elements) * bytes(p.dtype);
  p.bytes_read = static_cast<std::int64_t>(size * p.inputs);
  p.bytes_written = static_cast<std::int64_t>(size * p.outputs);
  p.flops_per_element = 8;
  return r.done(p, !backward && vllm(r, p.dtype) ? "vllm::silu_and_mul" : "");
}

Result<Op> rope(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Pointwise p;
  const std::int64_t tokens = rows_of(r);
  const std::int64_t heads = r.take({"heads", "n_heads", "num_heads", "num_q_heads"}, 0);
  if (heads > 0) {
    const std::int64_t kv = r.take({"kv_heads", "num_kv_heads", "n_kv_heads"}, heads);
    auto head = r.size({"head_dim", "d"});
    p.elements = tokens * (heads + kv) * (head ? *head : cols_of(r) / heads);
  } else {
    p.elements = tokens * cols_of(r);
  }
  p.dtype = r.dtype(DType::bf16);
  p.bytes_read = p.bytes_written =
      static_cast<std::int64_t>(static_cast<double>(p.elements) * bytes(p.dtype));
  p.flops_per_element = 4;
  r.direction();
  return r.done(p, vllm(r, p.dtype) ? "vllm::rotary" : "");
}

Result<Op> embedding(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  const std::int64_t rows = rows_of(r);
  const std::int64_t cols = r.need({"cols", "hidden", "dim", "h", "n"});
  const std::int64_t table = r.take({"vocab", "table_rows", "v"}, 32000);
  const DType type = r.dtype(DType::f32);
  if (r.direction() != Direction::forward || name == "scatter" || name == "index_add") {
    Scatter s;
    s.rows = rows, s.cols = cols, s.table_rows = table, s.dtype = type, s.atomic = true;
    return r.done(s);
  }
  Gather g;
  g.rows = rows, g.cols = cols, g.table_rows = table, g.dtype = type;
  return r.done(g, name == "embedding" && vllm(r, type) ? "vllm::embedding" : "");
}

Result<Op> optimizer(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  OptimizerStep o;
  o.kind = parse_enum<OptimizerKind>(name).value_or(OptimizerKind::other);
  o.elements = r.need({"elements", "params", "parameters", "n"});
  o.tensors = r.take({"tensors"}, 1);
  o.dtype = r.dtype(DType::f32);
  o.fused = r.flag({"fused"}, true);
  const bool two = name != "sgd";
  const double size = static_cast<double>(o.elements) * bytes(o.dtype);
  o.bytes_read = static_cast<std::int64_t>(size * (two ? 4 : 3));
  o.bytes_written = static_cast<std::int64_t>(size * (two ? 3 : 2));
  return r.done(o);
}

Result<Op> copy(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Copy c;
  c.bytes = r.need({"bytes", "size"});
  auto d = r.word({"direction", "kind"});
  if (d) {
    c.direction = *d == "h2d"   ? CopyDirection::host_to_device
                  : *d == "d2h" ? CopyDirection::device_to_host
                  : *d == "d2d" ? CopyDirection::device
                                : parse_enum<CopyDirection>(*d).value_or(CopyDirection::device);
    if (*d != "h2d" && *d != "d2h" && *d != "d2d" && !parse_enum<CopyDirection>(*d))
      r.fail("direction=" + *d + ": expected device, host_to_device, device_to_host or peer");
  }
  c.pinned = r.flag({"pinned"}, true);
  return r.done(c);
}

Result<Op> reduction(std::string_view name, Keys& keys) {
  Reader r(name, keys);
  Reduction d;
  auto inputs = r.size({"inputs", "elements"});
  if (inputs) {
    d.inputs = *inputs, d.outputs = r.take({"outputs"}, 1);
  } else {
    d.outputs = rows_of(r), d.inputs = d.outputs * cols_of(r);
  }
  d.in = d.out = r.dtype(DType::f32);
  d.inner = r.flag({"inner"}, true);
  return r.done(d);
}

Result<Op> plain(std::string_view name, Keys& keys) {
  auto work = work_of_kind(name);
  if (!work) return Error{"unknown op"};
  std::vector<std::string> used;
  Status problem;
  std::visit(
      [&](auto& w) {
        std::remove_cvref_t<decltype(w)>::each(w, [&](std::string_view field, auto&) {
          if (auto it = keys.find(field); it != keys.end()) used.emplace_back(field);
        });
      },
      *work);
  for (const std::string& field : used) {
    auto it = keys.find(field);
    if (!it->second.empty())
      if (auto status = set_field(*work, field, it->second); !status) return status.error();
    keys.erase(it);
  }
  Op op;
  op.work = *work;
  return op;
}

}  // namespace

const std::vector<Word>& vocabulary() {
  static const std::vector<Word> words{
      {"gemm matmul mm addmm",
       "m n k [batch] [dtype=f16] [out_dtype] [transpose_a] [transpose_b] [accumulate] [groups] "
       "[library]",
       "C[m×n] = A[m×k]·B[k×n], row-major as PyTorch writes it",
       "gemm m=4096 n=4096 k=8192 dtype=bf16", gemm},
      {"linear", "tokens out_features in_features [dtype=f16]", "y = x·Wᵀ",
       "linear tokens=8192 out_features=28672 in_features=8192 dtype=bf16", gemm},
      {"bmm", "batch m n k [dtype=f16]", "batched product",
       "bmm batch=512 m=128 n=128 k=64 dtype=f32", gemm},
      {"conv convolution conv2d conv1d conv3d",
       "n c k h w [d] kernel_size|kh kw [stride] [padding] [dilation] [groups] [dtype=f32] "
       "[layout=nchw|nhwc] [direction]",
       "convolution; direction forward, data_gradient, weight_gradient or backward (both)",
       "conv n=32 c=64 h=56 w=56 k=64 kernel_size=3 padding=1 dtype=f16 layout=nhwc", conv},
      {"attention flash_attention sdpa",
       "batch heads [kv_heads] seq|seq_q seq_k head_dim [causal] [dropout] [window] [dtype=f16] "
       "[short_batch short_q short_k] [direction] [kernel=flash2|flash3|cudnn|memory_efficient] "
       "[kv_dtype] [library]",
       "fused attention",
       "attention batch=4 heads=32 kv_heads=8 seq=4096 head_dim=128 causal=1 dtype=bf16",
       attention},
      {"moe",
       "tokens hidden inner experts topk [tp] [ep] [dtype=bf16] [distribution] [gated=1] "
       "[kernel=triton|cutlass|trtllm|monolithic|modular|marlin] [library]",
       "the products of a mixture-of-experts layer, fused as inference engines run them",
       "moe tokens=4096 hidden=4096 inner=1536 experts=128 topk=8 dtype=fp8_block", experts},
      {"layer_norm rms_norm layernorm rmsnorm",
       "rows cols [dtype=f32] [direction] [fused_add] [provider=torch|vllm]",
       "over the last dimension", "rms_norm rows=8192 cols=4096 dtype=bf16", norm},
      {"batch_norm group_norm batchnorm groupnorm",
       "n c h w [groups] [dtype=f32] [layout] [direction]", "training statistics",
       "batch_norm n=256 c=64 h=56 w=56 dtype=f16", batch_norm},
      {"softmax log_softmax", "rows cols [dtype=f32] [direction]", "over the last dimension",
       "softmax rows=8192 cols=4096", softmax},
      {"cross_entropy", "rows vocab [dtype=f32] [direction] [fused=1]", "loss of logits",
       "cross_entropy rows=8192 vocab=32000", cross_entropy},
      {"pointwise add mul sub div relu gelu silu tanh sigmoid exp pow sqrt cast",
       "elements|rows cols [inputs] [outputs] [dtype=f32] [strided]",
       "one output from inputs at the same index", "add elements=16777216 dtype=bf16", pointwise},
      {"swiglu geglu silu_mul silu_and_mul", "rows cols [dtype=bf16] [direction] [provider]",
       "act(gate)·up; cols: columns of the output", "swiglu rows=8192 cols=14336", swiglu},
      {"rope rotary", "tokens heads [kv_heads] head_dim [dtype=bf16] [provider]",
       "rotary position embedding of q and k", "rope tokens=8192 heads=32 kv_heads=8 head_dim=128",
       rope},
      {"embedding gather index_select scatter index_add",
       "rows cols [vocab] [dtype=f32] [direction] [provider]", "rows picked (or added) by index",
       "embedding rows=8192 cols=4096 vocab=32000 dtype=bf16", embedding},
      {"adam adamw sgd lamb lion", "elements [dtype=f32] [fused=1] [tensors]", "optimizer step",
       "adamw elements=1000000000", optimizer},
      {"copy memcpy", "bytes [direction=d2d|h2d|d2h|peer] [pinned=1]", "memory copy",
       "copy bytes=268435456 direction=h2d", copy},
      {"reduction sum mean max", "inputs outputs | rows cols [dtype=f32]", "reduction",
       "sum rows=4096 cols=4096", reduction},
  };
  return words;
}

Result<Op> build_op(std::string_view name, Keys keys, bool strict) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : std::tolower(c); });
  if (lower == "layernorm") lower = "layer_norm";
  if (lower == "rmsnorm") lower = "rms_norm";
  if (lower == "batchnorm") lower = "batch_norm";
  if (lower == "groupnorm") lower = "group_norm";
  auto check = [&](Result<Op> op) -> Result<Op> {
    if (op && strict && !keys.empty())
      return Error{lower + ": unknown key '" + keys.begin()->first +
                   "'; see `maya estimate --help`"};
    return op;
  };
  for (const Word& word : vocabulary()) {
    std::string padded = " " + std::string(word.names) + " ";
    if (padded.find(" " + lower + " ") != padded.npos) {
      auto op = word.build(lower, keys);
      return check(std::move(op));
    }
  }
  if (auto op = plain(lower, keys))
    return check(std::move(op));
  else if (work_of_kind(lower))
    return op.error();
  std::string known;
  for (const Word& word : vocabulary())
    known.append(known.empty() ? "" : ", ").append(word.names.substr(0, word.names.find(' ')));
  return Error{
      "unknown op '" + std::string(name) + "'; known are " + known +
      " and the kinds of the recording (sort, scan, pool, fft, …); see `maya estimate --help`"};
}

}  // namespace maya::estimate
