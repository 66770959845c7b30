// Kernels of FlashInfer and of SGLang's library that is built from it: norms, activations, rotary
// embedding, sampling and quantization, by name and parameters. Attention is elsewhere.
#include <algorithm>

#include "decode/serving_families.h"
#include "decode/traffic.h"

namespace maya::decode {
namespace {

std::int64_t blocks(const Arguments& a) { return static_cast<std::int64_t>(a.grid(0)); }

// (Gemma)(FusedAdd)RMSNormKernel<vector, T>(in, …, unsigned width, …), a block a row.
Made norm(const Kernel& kernel, const Name& name, DType t) {
  const auto sizes = positions(name, "unsigned int");
  if (sizes.empty()) return nullptr;
  const bool add = contains(name.leaf, "FusedAdd");
  const std::size_t width = sizes[0];
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Normalization work;
    work.kind = NormKind::rms;
    work.rows = blocks(a), work.cols = a.integer(width);
    work.dtype = t;
    work.fused_add = add;
    d.op.work = work;
  });
}

// act_and_mul_kernel<T, act>(out, in, int width), a block a token.
Made activation(const Kernel& kernel, const Name& name, DType t) {
  const auto ints = positions(name, "int");
  if (ints.empty()) return nullptr;
  const std::size_t width = ints[0];
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = blocks(a) * a.integer(width);
    d.op.work = traffic(n, n * 2 * whole_bytes(t), n * whole_bytes(t), t, 8);
  });
}

// BatchQKApplyRotary…(q, k, …, unsigned tokens, query heads, key heads, rotated, …)
Made rotary(const Kernel& kernel, const Name& name, DType t) {
  const auto sizes = positions(name, "unsigned int");
  if (sizes.size() < 4) return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t heads = a.integer(sizes[1]) + a.integer(sizes[2]);
    const std::int64_t n = a.integer(sizes[0]) * heads * a.integer(sizes[3]);
    d.op.work = traffic(n, n * whole_bytes(t), n * whole_bytes(t), t, 3);
  });
}

// …(probabilities or logits, …, unsigned vocabulary, …), a block a sequence. Kernels that look for
// a threshold read their row several times, mostly from the cache.
Made sampling(const Kernel& kernel, const Name& name) {
  const auto sizes = positions(name, "unsigned int");
  if (sizes.empty()) return nullptr;
  const std::size_t vocabulary = sizes[0];
  const bool row = contains(name.leaf, "Softmax") || contains(name.leaf, "Renorm") ||
                   contains(name.leaf, "Mask");  // else a token is all it writes
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t rows = blocks(a), n = rows * a.integer(vocabulary);
    d.op.work = traffic(n, n * 4, row ? n * 4 : rows * 4, DType::f32, 4);
  });
}

// per_token_quant_fp8…(in, out, scales, long width, long tokens)
Made token_quantization(const Kernel& kernel, const Name& name, DType in) {
  const auto sizes = positions(name, "long");
  if (sizes.size() < 2) return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t rows = a.integer(sizes[1]), n = a.integer(sizes[0]) * rows;
    d.op.work = traffic(n, n * whole_bytes(in), n + rows * 4, in, 4);
  });
}

// moe_sum_reduce_…(in, out, long tokens, long width, long experts, …)
Made expert_sum(const Kernel& kernel, const Name& name, DType t) {
  const auto sizes = positions(name, "long");
  if (sizes.size() < 3) return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = a.integer(sizes[0]) * a.integer(sizes[1]);
    d.op.work = traffic(n, n * a.integer(sizes[2]) * whole_bytes(t), n * whole_bytes(t), t, 1);
  });
}

}  // namespace

Made prepare_flashinfer(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  const DType first = template_dtype(name, 0, DType::bf16);
  if (starts_with(leaf, "per_token_quant_fp8")) return token_quantization(kernel, name, first);
  if (starts_with(leaf, "moe_sum_reduce_")) return expert_sum(kernel, name, first);
  if (!starts_with(name.base, "flashinfer::")) return nullptr;
  if (contains(leaf, "RMSNormKernel"))
    return norm(kernel, name, template_dtype(name, 1, DType::bf16));
  if (leaf == "act_and_mul_kernel") return activation(kernel, name, first);
  if (starts_with(leaf, "BatchQKApplyRotary"))
    return rotary(kernel, name, template_dtype(name, 4, DType::bf16));
  if (starts_with(name.base, "flashinfer::sampling::")) return sampling(kernel, name);
  return nullptr;
}

}  // namespace maya::decode
