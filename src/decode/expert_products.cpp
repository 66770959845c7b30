// Kernels of vLLM's and SGLang's libraries that compute one product of all experts of a layer with
// weights of 4 or 8 bits and 16-bit tokens: Marlin, and the kernel for few tokens.
#include <cstdint>
#include <cstdlib>

#include "decode/experts.h"
#include "decode/serving_families.h"
#include "decode/traffic.h"

namespace maya::decode {
namespace {

// vllm::ScalarType by its number: bits of the exponent, bits of the mantissa, whether it is signed.
DType scalar_type(const Name& name, std::size_t index) {
  const auto id = static_cast<std::uint64_t>(template_number(name, index));
  const auto exponent = id & 0xff, mantissa = id >> 8 & 0xff, sign = id >> 16 & 1;
  switch (exponent + mantissa + sign) {
    case 4:
      return DType::f4;  // integers too: what counts is how many bits are read
    case 8:
      return exponent == 0 ? DType::i8 : exponent == 5 ? DType::f8e5m2 : DType::f8e4m3;
    case 16:
      return exponent == 5 ? DType::f16 : DType::bf16;
    default:
      return DType::unknown;
  }
}

struct Product {
  std::int64_t tokens{}, top{}, n{}, k{}, groups{};  // groups of weights along k with a scale each
  std::uint64_t weights{};
};

bool product(const Arguments& a, const Product& p, Gemm& work) {
  if (p.tokens < 1 || p.top < 1 || p.n < 1 || p.k < 1) return false;
  work.n = p.n, work.k = p.k;
  if (p.groups > 1 && p.k % p.groups == 0) work.scale_block = p.k / p.groups;
  if (p.top > 1) note_router({0, p.top});
  work.part = p.top > 1               ? ExpertsPart::first
              : last_router().top > 1 ? ExpertsPart::second
                                      : ExpertsPart::unknown;
  Dealt dealt;
  dealt.rows = p.tokens * p.top;
  dealt.top = p.top > 1 ? p.top : 0;
  dealt.local = experts_behind(a.launch(), p.weights,
                               bytes(work.b) * static_cast<double>(p.n) * static_cast<double>(p.k));
  if (dealt.local < 1) return false;
  deal(work, dealt);
  return true;
}

// Of a kernel whose numbers and weights are where `read` says.
template <class Read>
Made of(const Kernel& kernel, const Name& name, const Gemm& types, Read read) {
  if (types.a == DType::unknown || types.b == DType::unknown) return nullptr;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Gemm work = types;
    if (product(a, read(a), work)) {
      d.op.work = work;
    } else {
      d.recognised = false;
      d.op.work = OtherKernel{};
    }
  });
}

// marlin_moe_wna16::Marlin<type of tokens, of weights, of the result, of scales, …>(tokens,
// weights, …, int top, bool, int groups, int tokens, int n, int k, …)
Made marlin(const Kernel& kernel, const Name& name) {
  const auto ints = positions(name, "int");
  if (ints.size() < 5) return nullptr;
  Gemm types;
  types.a = types.compute = scalar_type(name, 0);
  types.b = scalar_type(name, 1), types.d = scalar_type(name, 2);
  return of(kernel, name, types, [ints](const Arguments& a) {
    return Product{a.integer(ints[2]), a.integer(ints[0]), a.integer(ints[3]),
                   a.integer(ints[4]), a.integer(ints[1]), a.pointer(1)};
  });
}

// moe_wna16_gemm_kernel<T, bits, …>(tokens, out, weights, scales, zeros, …, unsigned short experts,
// group, top, unsigned tokens, n, k, …)
Made few_tokens(const Kernel& kernel, const Name& name) {
  const auto shorts = positions(name, "unsigned short");
  const auto sizes = positions(name, "unsigned int");
  if (shorts.size() < 3 || sizes.size() < 3) return nullptr;
  Gemm types;
  types.a = types.compute = types.d = template_dtype(name, 0, DType::bf16);
  types.b = template_number(name, 1) == 4 ? DType::f4 : DType::i8;
  return of(kernel, name, types, [=](const Arguments& a) {
    const auto number = [&](std::size_t i) { return std::int64_t{a.at<std::uint32_t>(i)}; };
    const auto small = [&](std::size_t i) { return std::int64_t{a.at<std::uint16_t>(i)}; };
    const std::int64_t k = number(sizes[2]), group = small(shorts[1]);
    return Product{number(sizes[0]),          small(shorts[2]), number(sizes[1]), k,
                   group > 0 ? k / group : 0, a.pointer(2)};
  });
}

}  // namespace

Made prepare_expert_products(const Kernel& kernel, const Name& name) {
  if (name.leaf == "Marlin" && contains(name.base, "marlin_moe")) return marlin(kernel, name);
  if (name.leaf == "moe_wna16_gemm_kernel") return few_tokens(kernel, name);
  return nullptr;
}

}  // namespace maya::decode
