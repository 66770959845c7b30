// Kinds of kernels that compute the products of a mixture-of-experts layer in one call. Engines
// choose among them by GPU, type and activation; each has times of its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace maya::estimate {

enum class ExpertsKernel : std::uint8_t {
  other,
  triton,
  cutlass,     // CUTLASS grouped products: FlashInfer's, TensorRT-LLM's
  trtllm,      // TensorRT-LLM's generated kernels, through FlashInfer
  monolithic,  // … which also choose the experts
  modular,     // … which are told them
  marlin,
};

// By what a kernel, or the engine's name for it (kernel_source of the tables), is called.
constexpr ExpertsKernel experts_kernel(std::string_view source) {
  constexpr std::pair<std::string_view, ExpertsKernel> parts[] = {
      {"marlin", ExpertsKernel::marlin},         {"modular", ExpertsKernel::modular},
      {"monolithic", ExpertsKernel::monolithic}, {"cutlass", ExpertsKernel::cutlass},
      {"nongated", ExpertsKernel::cutlass},      {"trtllm", ExpertsKernel::trtllm},
      {"matmul_ogs", ExpertsKernel::monolithic},  // what the tables call so where it is Triton's
      {"triton", ExpertsKernel::triton},         {"fused_moe", ExpertsKernel::triton}};
  for (const auto& [part, kind] : parts)
    if (source.find(part) != source.npos) return kind;
  return ExpertsKernel::other;
}

}  // namespace maya::estimate
