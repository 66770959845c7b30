// Kernels of packages around PyTorch: bitsandbytes, Apex, Transformer Engine, FBGEMM's embedding
// tables, the first FlashAttention, and others whose parameter lists speak for themselves.
#include <algorithm>

#include "decode/functor.h"
#include "decode/operands.h"
#include "decode/table.h"

namespace maya::decode {
namespace {

constexpr Row package_table[] = {
    // bitsandbytes: (m, n, k, …), weights of four bits
    {.kernel = "gemm_4bit*|kgemm_4bit*", .op = "gemm a=T0 b=f4 d=T0 compute=T0 m=i0 n=i1 k=i2"},
    // Apex's older layer norm: cuApplyLayerNorm(out, mean, invvar, in, int rows, int cols, …) and
    // its gradients
    {.kernel = "cuComputePartGradGammaBeta*|cuComputeGradGammaBeta*",
     .op = "normalization kind=weight_reduction direction=backward dtype=T0 rows=i0 cols=i1"},
    {.kernel = "cuApply*",
     .when = "has:RMS",
     .op = "normalization kind=rms dtype=T0 rows=i0 cols=i1"},
    {.kernel = "cuApply*", .op = "normalization kind=layer dtype=T0 rows=i0 cols=i1"},
    {.kernel = "cuComputeGradInput*",
     .when = "has:RMS",
     .op = "normalization kind=rms direction=backward dtype=T0 rows=i0 cols=i1"},
    {.kernel = "cuComputeGradInput*",
     .op = "normalization kind=layer direction=backward dtype=T0 rows=i0 cols=i1"},
};

// The largest size, or product of two neighbouring sizes, that the launch can have worked through.
std::int64_t elements(const Signature& s, const Arguments& a) {
  auto threads = static_cast<std::int64_t>(a.geometry().threads());
  std::int64_t limit = threads * 256, best = 0;
  std::vector<std::int64_t> values;
  for (std::size_t i : s.integers()) values.push_back(a.integer(i));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > best && values[i] <= limit) best = values[i];
    if (i + 1 < values.size() && values[i] > 0 && values[i + 1] > 0 && values[i] <= limit &&
        values[i + 1] <= limit && values[i] != values[i + 1]) {
      std::int64_t product = values[i] * values[i + 1];
      if (product > best && product <= limit) best = product;
    }
  }
  return best > 0 ? best : threads;
}

Made bitsandbytes(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  auto signature = std::make_shared<Signature>(kernel, name);
  DType t = template_dtype(name, 0, DType::f32);
  int size = whole_bytes(t);
  std::size_t last = name.parameters.empty() ? 0 : name.parameters.size() - 1;
  if (starts_with(leaf, "kQuantizeBlockwise") || leaf == "kDequantizeBlockwise") {
    bool quantize = starts_with(leaf, "kQ");
    // The last template argument is the data type: 0 general 8 bit, 1 FP4, 2 NF4.
    long kind = template_number(name, name.templates.empty() ? 0 : name.templates.size() - 1, 0);
    if (leaf == "kQuantizeBlockwiseSmall") kind = 1;
    return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
      Pointwise work;
      work.elements = a.integer(last);
      std::int64_t packed = kind > 0 ? (work.elements + 1) / 2 : work.elements;
      std::int64_t scales = work.elements / 64 * 4;
      (quantize ? work.bytes_read : work.bytes_written) = work.elements * size;
      (quantize ? work.bytes_written : work.bytes_read) = packed + scales;
      work.dtype = t;
      work.flops_per_element = quantize ? 12 : 2;
      d.op.work = work;
    });
  }
  if (starts_with(leaf, "kOptimizer") || starts_with(leaf, "kPreconditionOptimizer")) {
    bool two = contains(leaf, "2State"), eight = contains(leaf, "8bit"),
         pre = starts_with(leaf, "kPre");
    long which = template_number(
        name, 1, 0);  // ADAM 0, MOMENTUM 1, RMSPROP 2, LARS 3, ADAGRAD 4, LION 5, ADEMAMIX 6
    OptimizerKind kind = which == 0   ? OptimizerKind::adam
                         : which == 1 ? OptimizerKind::sgd
                         : which == 2 ? OptimizerKind::rmsprop
                         : which == 4 ? OptimizerKind::adagrad
                         : which == 5 ? OptimizerKind::lion
                                      : OptimizerKind::other;
    return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
      OptimizerStep work;
      work.kind = kind;
      work.elements = a.integer(last);
      std::int64_t state = (two ? 2 : 1) * (eight ? 1 : 4);
      work.bytes_read = work.elements * (pre ? size + state : 2 * size + state);
      work.bytes_written = pre ? 4 : work.elements * (size + state);
      work.dtype = t;
      work.fused = !pre;
      d.op.work = work;
    });
  }
  if (leaf == "kInt8VectorQuant" || leaf == "kdequant_mm_int32_fp16" || leaf == "kfunc") {
    return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
      d.op.work = stream(*signature, a, elements(*signature, a), d);
    });
  }
  return nullptr;
}

// Apex's contrib and Transformer Engine's normalization: one struct { [int ctas …]; int rows, cols;
// void* x; … }.
Made packed_norm(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  bool rms = contains(leaf, "rms") || contains(leaf, "RMS");
  bool forward = contains(leaf, "fwd"), finalize = contains(leaf, "finalize");
  // Kernel_traits<weight, input, output, compute, index, HIDDEN, …>
  long hidden = 0;
  DType t = first_dtype(kernel.demangled);
  for (std::string_view marker : {"Kernel_traits<", "Kernel_traits_finalize<"}) {
    std::size_t at = kernel.demangled.find(marker);
    if (at == std::string::npos) continue;
    for (const std::string& s :
         split_arguments(std::string_view(kernel.demangled).substr(at + marker.size()))) {
      long v = std::strtol(s.c_str(), nullptr, 10);
      if (v >= 64) {
        hidden = v;
        break;
      }
    }
  }
  std::vector<KeyPart> key;
  if (!kernel.parameter_sizes.empty())
    key.push_back({0, 0, std::min<std::uint16_t>(kernel.parameter_sizes[0], 24)});
  return make(key, [=](const Arguments& a, Decoded& d) {
    Normalization work;
    work.kind = finalize ? NormKind::weight_reduction : rms ? NormKind::rms : NormKind::layer;
    work.dtype = t == DType::unknown ? DType::bf16 : t;
    work.direction = forward ? Direction::forward : Direction::backward;
    for (std::size_t at : {4, 8, 0, 12}) {
      std::int64_t rows = a.at<std::int32_t>(0, at), cols = a.at<std::int32_t>(0, at + 4);
      if (rows < 1 || cols < 32 || cols > (1 << 20)) continue;
      if (hidden && cols != hidden) continue;
      work.rows = rows, work.cols = cols;
      break;
    }
    d.op.work = work;
  });
}

// FBGEMM's table-batched embeddings: accessors for everything. The longest index list is the rows
// picked, the two-dimensional float accessor the pooled output (or its gradient).
Made table_batched(const Kernel& kernel, const Name& name) {
  auto signature = std::make_shared<Signature>(kernel, name);
  bool backward = contains(name.leaf, "backward"), gradient = contains(name.leaf, "grad_indice");
  DType t = template_dtype(name, 0, DType::f32), index = DType::i64;
  for (const std::string& s : name.templates)
    if (dtype_of(s) == DType::i32) index = DType::i32;
  return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
    std::int64_t rows = 0, offsets = 0, width = 0, batch = 1;
    for (const Tensor& x : signature->tensors(a)) {
      if (x.elements <= 0) continue;
      if (x.rank == 1 && is_integer(x.dtype)) {
        if (x.elements > rows)
          offsets = rows, rows = x.elements;
        else if (x.elements > offsets && x.elements != rows)
          offsets = x.elements;
      } else if (x.rank == 2 && !is_integer(x.dtype) && x.elements > width * batch) {
        batch = std::max<std::int64_t>(1, x.size[0]), width = x.size[1];
      }
    }
    std::int64_t tables = std::max<std::int64_t>(1, (offsets - 1) / batch);
    std::int64_t cols = std::max<std::int64_t>(1, width / tables);
    if (backward && !gradient) {
      Scatter work;
      work.rows = rows, work.cols = cols, work.dtype = t, work.index = index;
      d.op.work = work;
    } else {
      Gather work;
      work.rows = rows, work.cols = cols, work.dtype = t, work.index = index;
      d.op.work = work;
    }
  });
}

// FlashAttention 1, as torch 2.0 and 2.1 carry it: grid (batch, heads), dims { int b, seqlen_q,
// seqlen_k, d } followed by the scale.
Made flash1(const Kernel& kernel, const Name& name) {
  bool backward = contains(name.leaf, "bwd"), helper = contains(name.leaf, "dot_do_o");
  DType t = contains(kernel.demangled, "bfloat16") ? DType::bf16 : DType::f16;
  bool causal = false, dropout = false;
  int flag = 0;
  for (const std::string& s : name.templates) {
    if (s != "true" && s != "false") continue;
    if (flag == 0) dropout = s == "true";
    if (flag == 1) causal = s == "true";
    ++flag;
  }
  std::vector<KeyPart> key;
  if (!kernel.parameter_sizes.empty() && kernel.parameter_sizes[0] > 200)
    key.push_back({0, 96, 100});
  return make(key, [=](const Arguments& a, Decoded& d) {
    Attention work;
    work.kernel = AttentionKernel::flash2;
    work.dtype = t;
    work.causal = causal;
    work.dropout = dropout;
    work.varlen = true;
    work.direction = backward ? Direction::backward : Direction::forward;
    work.batch = static_cast<std::int64_t>(a.grid(0));
    work.heads = work.kv_heads = static_cast<std::int64_t>(a.grid(1));
    bool found = false;
    for (std::size_t at = 48; at + 20 <= a.size(0) && at < 260; at += 4) {
      std::int64_t b = a.at<std::int32_t>(0, at), q = a.at<std::int32_t>(0, at + 4);
      std::int64_t k = a.at<std::int32_t>(0, at + 8), dim = a.at<std::int32_t>(0, at + 12);
      float scale = a.at<float>(0, at + 16);
      if (b != work.batch || q < 1 || k < 1 || dim < 8 || dim > 256 || dim % 8 ||
          !(scale > 0.001f && scale < 4))
        continue;
      work.seq_q = q, work.seq_k = k, work.head_dim = work.head_dim_v = dim;
      found = true;
      break;
    }
    if (helper) {
      Pointwise p;
      p.elements = work.batch * work.heads * work.seq_q * work.head_dim;
      p.inputs = 2;
      p.bytes_read = p.elements * 4;
      p.bytes_written = p.elements * 4;
      p.dtype = t;
      d.op.work = p;
    } else {
      d.op.work = work;
    }
    d.recognised = found || !a.launch().arguments;
  });
}

constexpr std::string_view prefixes[] = {"transformer_engine::",
                                         "apex::",
                                         "xformers::",
                                         "fused_rope_",
                                         "fused_layer_norm",
                                         "fbgemm::",
                                         "nvte_",
                                         "deepspeed::",
                                         "causal_conv1d",
                                         "selective_scan",
                                         "multi_tensor_",
                                         "colossalai::",
                                         "nvjpeg::",
                                         "mxfp8",
                                         "mx_block",
                                         "fused_pad_token_groups",
                                         "fused_unpad_token_groups",
                                         "compute_padded_offsets"};

constexpr std::string_view leaves[] = {"moe_permute_kernel",
                                       "moe_permute_row_map",
                                       "moe_unpermute_kernel",
                                       "linearize_index_kernel",
                                       "linearize_index_wo_infos_kernel",
                                       "bounds_check_indices_kernel",
                                       "bounds_check_indices_kernel_v1",
                                       "bounds_check_indices_kernel_v2",
                                       "recat_copy_async_kernel",
                                       "dequantize_mx4_to_float_kernel",
                                       "quantize_float_to_mx4_kernel",
                                       "radix_sort_kernel",
                                       "sparse24_sparsify_both_ways_kernel",
                                       "sparseNM_dense_kernel",
                                       "sparse24_apply_dense_output_k",
                                       "sparse24_largest_mask_2d_cu",
                                       "sparse24_apply_kernel",
                                       "causal_conv1d_fwd_kernel",
                                       "causal_conv1d_bwd_kernel",
                                       "causal_conv1d_channellast_fwd_kernel",
                                       "causal_conv1d_channellast_bwd_kernel",
                                       "selective_scan_fwd_kernel",
                                       "selective_scan_bwd_kernel"};

}  // namespace

std::span<const Row> package_rows() { return package_table; }

Made prepare_package(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (Made made = bitsandbytes(kernel, name)) return made;
  if (starts_with(leaf, "fmha_fwd") || starts_with(leaf, "fmha_bwd")) return flash1(kernel, name);
  if (starts_with(leaf, "ln_fwd") || starts_with(leaf, "ln_bwd") ||
      starts_with(leaf, "rmsnorm_fwd") || starts_with(leaf, "rmsnorm_bwd"))
    return packed_norm(kernel, name);
  if (Made made = from_rows(package_table, kernel, name)) return made;
  if (contains(leaf, "codegen") && (contains(leaf, "embedding") || contains(leaf, "index_select")))
    return table_batched(kernel, name);
  bool known = contains(leaf, "embedding_codegen") || contains(leaf, "embedding_backward");
  for (std::string_view p : prefixes) known |= starts_with(name.base, p);
  for (std::string_view l : leaves) known |= leaf == l;
  if (!known) return nullptr;
  auto signature = std::make_shared<Signature>(kernel, name);
  int flops = flops_of(leaf);
  return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
    Pointwise work = stream(*signature, a, elements(*signature, a), d);
    // Tensor maps hide the data: the element types in the name stand for one input and one output.
    if (work.bytes_read + work.bytes_written < work.elements) {
      work.bytes_read += work.elements * 2;
      work.bytes_written += work.elements;
      work.dtype = DType::bf16;
    }
    work.flops_per_element = flops;
    d.op.work = work;
  });
}

}  // namespace maya::decode
