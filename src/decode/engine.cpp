// Kernels of the libraries that serving engines bring along: vLLM's norms, activations, rotary
// embedding, cache writes and quantization. One block works on one token, so the grid says how many
// tokens there are, and the parameters how wide one is.
#include <algorithm>
#include <cstdlib>

#include "decode/traffic.h"

namespace maya::decode {
namespace {

DType written(const Name& name, DType otherwise) {
  for (const std::string& type : name.parameters)
    if (is_pointer(type) && !is_const_pointer(type)) {
      const DType t = dtype_of(pointee(type));
      return t == DType::unknown ? otherwise : t;
    }
  return otherwise;
}

// …(out, in, …, float epsilon, int tokens, int hidden, …). Norms that quantize each token, or each
// block of it, by a scale of its own have (…, float epsilon, int hidden, int stride, …).
Made norm(const Kernel& kernel, const Name& name, DType in, DType out) {
  const auto floats = positions(name, "float");
  if (floats.empty()) return nullptr;
  const auto ints = positions(name, "int", floats[0]);
  const bool own_scale = contains(name.leaf, "dynamic") || contains(name.leaf, "per_block");
  const std::size_t which = own_scale ? 0 : 1;
  if (ints.size() <= which) return nullptr;
  const std::size_t hidden = ints[which];
  const bool add = starts_with(name.leaf, "fused_add");
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const auto rows = static_cast<std::int64_t>(a.grid(0));
    const std::int64_t cols = a.integer(hidden);
    if (out == in) {
      Normalization work;
      work.kind = NormKind::rms;
      work.rows = rows, work.cols = cols;
      work.dtype = in;
      work.fused_add = add;
      d.op.work = work;
    } else {
      const std::int64_t n = rows * cols;
      d.op.work = traffic(n, n * whole_bytes(in) * (add ? 2 : 1),
                          n * (whole_bytes(out) + (add ? whole_bytes(in) : 0)), in, 6);
    }
  });
}

// …(out, in, …, int width, …): a row of `reads` · width for each token becomes one of width.
Made row(const Kernel& kernel, const Name& name, DType in, DType out, int reads, int flops) {
  const auto ints = positions(name, "int");
  if (ints.empty()) return nullptr;
  const std::size_t width = ints[0];
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = static_cast<std::int64_t>(a.grid(0)) * a.integer(width);
    d.op.work = traffic(n, n * reads * whole_bytes(in), n * whole_bytes(out), in, flops);
  });
}

// rotary_embedding_kernel(positions, q, k, cos_sin, int rotated, long …, int heads, int kv_heads,
// int head_size, …), in place.
Made rotary(const Kernel& kernel, const Name& name, DType t) {
  const auto ints = positions(name, "int");
  if (ints.size() < 3) return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t heads =
        a.integer(ints[1]) + (a.pointer(2) != 0 ? a.integer(ints[2]) : std::int64_t{0});
    const std::int64_t n = static_cast<std::int64_t>(a.grid(0)) * heads * a.integer(ints[0]);
    d.op.work = traffic(n, n * whole_bytes(t), n * whole_bytes(t), t, 3);
  });
}

// Keys and values of each token go to their places in the cache: `first` and `second` are the
// factors of what a token has, heads and head size or the two parts of a latent vector.
Made cache_write(const Kernel& kernel, const Name& name, DType in, DType out, std::size_t first,
                 std::size_t second, bool latent) {
  const auto ints = positions(name, "int");
  if (ints.size() <= std::max(first, second)) return nullptr;
  const std::size_t x = ints[first], y = ints[second];
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t each =
        latent ? a.integer(x) + a.integer(y) : 2 * a.integer(x) * a.integer(y);
    const std::int64_t n = static_cast<std::int64_t>(a.grid(0)) * each;
    d.op.work = traffic(n, n * whole_bytes(in), n * whole_bytes(out), in, 1);
  });
}

// per_token_group_quant_8bit_kernel(in, out, scales, int group, int groups, …)
Made group_quantization(const Kernel& kernel, const Name& name, DType in, DType out) {
  const auto ints = positions(name, "int");
  if (ints.size() < 2) return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t groups = a.integer(ints[1]), n = a.integer(ints[0]) * groups;
    d.op.work = traffic(n, n * whole_bytes(in), n * whole_bytes(out) + groups * 4, in, 4);
  });
}

// merge_attn_states_kernel(out, lse, a, lse, b, lse, unsigned tokens, heads, head_size, …)
Made merge(const Kernel& kernel, const Name& name, DType in, DType out) {
  const auto sizes = positions(name, "unsigned int");
  if (sizes.size() < 3) return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = a.integer(sizes[0]) * a.integer(sizes[1]) * a.integer(sizes[2]);
    d.op.work = traffic(n, n * 2 * whole_bytes(in), n * whole_bytes(out), in, 4);
  });
}

// moe_sum_vec_kernel<T, …, experts, …>(out, in, long tokens, int width, …) of vLLM 0.32.
Made wide_expert_sum(const Kernel& kernel, const Name& name, DType t) {
  const auto longs = positions(name, "long"), ints = positions(name, "int");
  int experts = 0;
  for (const std::string& word : name.templates)
    if (experts == 0) experts = std::atoi(word.c_str());
  if (longs.empty() || ints.empty() || experts < 1) return nullptr;
  const std::size_t tokens = longs[0], width = ints[0];
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = a.integer(tokens) * a.integer(width);
    d.op.work = traffic(n, n * experts * whole_bytes(t), n * whole_bytes(t), t, 1);
  });
}

// vocab_parallel_embedding_kernel<index, uint4>(out, ids, weights, long tokens, long vectors, …):
// rows of 16-byte vectors, zeros for tokens of other ranks.
Made embedding(const Kernel& kernel, const Name& name) {
  const auto sizes = positions(name, "long");
  if (sizes.size() < 2 || name.templates.size() < 2 || name.templates[1] != "uint4") return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t bytes = a.integer(sizes[0]) * a.integer(sizes[1]) * 16;
    d.op.work = traffic(bytes / 2, bytes, bytes, DType::bf16, 0);
  });
}

// moe_sum_kernel<T, experts>(out, in, int width): the rows of a token's experts become one.
Made expert_sum(const Kernel& kernel, const Name& name, DType t) {
  const auto ints = positions(name, "int");
  if (ints.empty() || name.templates.size() < 2) return nullptr;
  const int experts = std::atoi(name.templates[1].c_str());
  const std::size_t width = ints[0];
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = static_cast<std::int64_t>(a.grid(0)) * a.integer(width);
    d.op.work = traffic(n, n * std::max(experts, 1) * whole_bytes(t), n * whole_bytes(t), t, 1);
  });
}

// Bookkeeping over sequences or experts: a few numbers for each thread.
Made bookkeeping(const Kernel& kernel, const Name& name) {
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const auto n = static_cast<std::int64_t>(a.geometry().threads());
    d.op.work = traffic(n, n * 4, n * 4, DType::i32, 4);
  });
}

}  // namespace

Made prepare_engine(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (leaf == "prepare_varlen_num_blocks_kernel") return bookkeeping(kernel, name);
  const DType in = template_dtype(name, 0, DType::bf16);
  if (leaf == "per_token_group_quant_8bit_kernel")
    return group_quantization(kernel, name, in, template_dtype(name, 1, DType::f8e4m3));
  if (!starts_with(name.base, "vllm::")) return nullptr;
  const DType out = written(name, in);
  if (starts_with(leaf, "rms_norm_") || starts_with(leaf, "fused_add_rms_norm_"))
    return norm(kernel, name, in, out);
  if (leaf == "rotary_embedding_kernel") return rotary(kernel, name, in);
  if (leaf == "reshape_and_cache_flash_kernel")
    return cache_write(kernel, name, in, template_dtype(name, 1, in), 0, 1, false);
  if (leaf == "reshape_and_cache_kernel")
    return cache_write(kernel, name, in, template_dtype(name, 1, in), 2, 3, false);
  if (leaf == "concat_and_cache_mla_kernel")
    return cache_write(kernel, name, in, template_dtype(name, 1, in), 4, 5, true);
  if (starts_with(leaf, "merge_attn_states")) return merge(kernel, name, in, out);
  if (leaf == "moe_sum_kernel") return expert_sum(kernel, name, in);
  if (leaf == "moe_sum_vec_kernel") return wide_expert_sum(kernel, name, in);
  if (leaf == "vocab_parallel_embedding_kernel") return embedding(kernel, name);
  if (starts_with(leaf, "masked_")) return nullptr;  // how many rows count is in memory
  if (contains(leaf, "_and_mul")) return row(kernel, name, in, out, 2, 8);
  if (leaf == "activation_kernel") return row(kernel, name, in, out, 1, 8);
  if (contains(leaf, "scaled_int8") || contains(leaf, "scaled_fp8_quant"))
    return row(kernel, name, in, out, 1, 4);
  return nullptr;
}

}  // namespace maya::decode
