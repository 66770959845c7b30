// Kernels that SGLang compiles when it starts: they take one struct by value. And FlashInfer's
// norms in the CuTe DSL, whose names are the types of their arguments with every sign left out.
#include <algorithm>
#include <cstdlib>

#include "decode/serving_families.h"
#include "decode/traffic.h"

namespace maya::decode {
namespace {

KeyPart number(std::uint16_t offset) { return {0, offset, 4}; }

std::int64_t word(const Arguments& a, std::size_t offset) { return a.at<std::uint32_t>(0, offset); }

// { in, out; unsigned width, tokens; … }
Made activation(const Name& name) {
  const DType t = template_dtype(name, 0, DType::bf16);
  return make({number(16), number(20)}, [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = word(a, 16) * word(a, 20);
    d.op.work = traffic(n, n * 2 * whole_bytes(t), n * whole_bytes(t), t, 8);
  });
}

// { q, k, cos_sin, positions; three strides; unsigned query heads, key heads, tokens; … }, in
// place. With `store`, keys and values go to the cache too.
Made rotary(const Name& name, bool store) {
  const DType t = template_dtype(name, 3, DType::bf16);
  const std::int64_t width = template_number(name, 1);
  if (width <= 0) return nullptr;
  return make({number(56), number(60), number(64)}, [=](const Arguments& a, Decoded& d) {
    const std::int64_t keys = word(a, 60), tokens = word(a, 64);
    const std::int64_t n = tokens * (word(a, 56) + keys) * width;
    const std::int64_t values = store ? tokens * keys * width : 0;
    d.op.work =
        traffic(n + values, (n + values) * whole_bytes(t), (n + values) * whole_bytes(t), t, 3);
  });
}

// store_kvcache_kernel<bytes of K, bytes of V, …>({ k, v, caches, indices; strides; unsigned
// tokens; … }): five strides, in older versions four and one size for both.
Made cache_write(const Kernel& kernel, const Name& name) {
  if (kernel.parameter_sizes.empty()) return nullptr;
  const bool current = kernel.parameter_sizes[0] >= 104;
  const std::int64_t keys = template_number(name, 0);
  const std::int64_t values = current ? template_number(name, 1) : keys;
  const std::uint16_t tokens = current ? 80 : 72;
  if (keys <= 0 || values <= 0) return nullptr;
  return make({number(tokens)}, [=](const Arguments& a, Decoded& d) {
    const std::int64_t bytes = word(a, tokens) * (keys + values);
    d.op.work = traffic(bytes / 2, bytes, bytes, DType::bf16, 1);
  });
}

// "…tensorptrbf16gmemalign128oi64409640961…": rows that are not known before, 4096 columns, and
// strides 4096 and 1. 0: not a plain matrix.
std::int64_t columns(const std::string& text) {
  const std::string mark = "oi64";
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return 0;
  std::size_t end = at + mark.size();
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  const std::string digits = text.substr(at + mark.size(), end - at - mark.size());
  const std::size_t half = digits.size() / 2;
  if (digits.size() % 2 == 0 || half == 0 || digits.back() != '1' ||
      digits.substr(0, half) != digits.substr(half, half))
    return 0;
  return std::atoll(digits.substr(0, half).c_str());
}

// (x, [residual,] weights, …); a matrix is { address; long rows }.
Made cute_norm(const Kernel& kernel, const std::string& text) {
  const std::int64_t cols = columns(text);
  if (cols <= 0 || kernel.parameter_sizes.empty() || kernel.parameter_sizes[0] != 16)
    return nullptr;
  const DType t = contains(text, "tensorptrf16") ? DType::f16 : DType::bf16;
  const bool add = contains(text, "FusedAdd");
  return make({{0, 8, 8}}, [=](const Arguments& a, Decoded& d) {
    Normalization work;
    work.kind = NormKind::rms;
    work.rows = a.at<std::int64_t>(0, 8), work.cols = cols;
    work.dtype = t;
    work.fused_add = add;
    d.op.work = work;
  });
}

}  // namespace

Made prepare_sglang(const Kernel& kernel, const Name& name) {
  if (starts_with(kernel.mangled, "kernel_cutlass_kernel_flashinfernormkernels"))
    return cute_norm(kernel, kernel.mangled);
  const std::string& leaf = name.leaf;
  const bool one_struct = name.parameters.size() == 1 && contains(name.parameters[0], "Params");
  if (!one_struct || kernel.parameter_sizes.size() != 1) return nullptr;
  if (leaf == "act_and_mul_kernel" && contains(name.parameters[0], "ActivationParams"))
    return activation(name);
  if (leaf == "fused_rope_kernel" || leaf == "fused_rope_store_kernel")
    return rotary(name, leaf == "fused_rope_store_kernel");
  if (leaf == "store_kvcache_kernel" || leaf == "store_kvcache") return cache_write(kernel, name);
  return nullptr;
}

}  // namespace maya::decode
