// The Triton kernel in which vLLM and SGLang compute one product of all experts of a layer.
//
// fused_moe_kernel(a, b, c, [bias], [scales of a and b], weights of the choice, sorted tokens,
// experts of blocks, number of rows; int N, K, EM, rows, stride of a's rows, of b's experts, …).
// Triton leaves out pointers that are None and strides that are 1. Which rows go to which expert is
// in memory, and nobody computes it: rows are taken to be dealt out evenly at random.
#include <algorithm>
#include <cmath>

#include "decode/gemm_name.h"
#include "decode/serving_families.h"

namespace maya::decode {
namespace {

// Experts that get a row at all: only their weights are read.
std::int64_t hit(double experts, double rows) {
  return std::llround(experts * (1 - std::pow(1 - 1 / experts, rows)));
}

}  // namespace

Made prepare_fused_experts(const Kernel& kernel, const Name&) {
  if (kernel.mangled != "fused_moe_kernel") return nullptr;
  const auto& sizes = kernel.parameter_sizes;
  std::size_t first = 0;
  while (first < sizes.size() && sizes[first] == 8) ++first;
  constexpr std::size_t plain = 7, scaled = 9, numbers = 6;
  if (first < plain || first + numbers > sizes.size()) return nullptr;
  for (std::size_t i = 0; i < numbers; ++i)
    if (sizes[first + i] != 4) return nullptr;
  const DType type = first >= scaled ? DType::f8e4m3 : DType::bf16;
  std::vector<KeyPart> key;
  for (std::size_t i = 0; i < numbers; ++i)
    key.push_back({static_cast<std::uint8_t>(first + i), 0, 4});
  return make(key, [=](const Arguments& a, Decoded& d) {
    const std::int64_t n = a.integer(first), k = a.integer(first + 1);
    const std::int64_t rows = a.integer(first + 3), expert = a.integer(first + 5);
    const auto& extent = a.launch().extent;
    if (n <= 0 || k <= 0 || rows <= 0 || expert != n * k || extent == nullptr) {
      d.recognised = false;
      d.op.work = OtherKernel{};
      return;
    }
    const auto bytes = static_cast<double>(extent(a.pointer(1)));
    const double experts = std::floor(bytes / static_cast<double>(expert * whole_bytes(type)));
    Gemm work = gemm_of(type);
    work.m = rows, work.n = n, work.k = k;
    work.groups =
        experts < 2 ? 2 : std::max<std::int64_t>(2, hit(experts, static_cast<double>(rows)));
    d.op.work = work;
  });
}

}  // namespace maya::decode
