#include "estimate/quantization.h"

#include <algorithm>

namespace maya::estimate {

Quantization Quantization::make(const Chip& chip, const ModelFile& file) {
  Quantization q;
  for (Learned family : {Learned::gemm_8, Learned::gemm_8_block, Learned::gemm_4})
    for (std::string_view library : {"vllm", "sglang", "trtllm"}) {
      const std::string key = std::string(name(family)) + "." + std::string(library);
      const Section section = file.section("quantization." + key, chip);
      const Cost cost{std::max(0.0, section.get("constant_ns", 0)),
                      std::max(0.0, section.get("bytes", 0))};
      if (cost.constant_ns > 0 || cost.bytes > 0) q.costs_.emplace(key, cost);
    }
  return q;
}

std::string_view Quantization::library_of(Learned family, std::string_view kernel) {
  return family == Learned::gemm_8 && kernel.starts_with("cublas") ? "trtllm" : "";
}

LearnedAnswer Quantization::without(Learned family, std::string_view library, const Chip& chip,
                                    const Gemm& work, LearnedAnswer whole) const {
  const auto found = costs_.find(std::string(name(family)) + "." + std::string(library));
  if (found == costs_.end() || whole.ns <= 0) return whole;
  // Column-major as BLAS sees it: the rows of the activations are n.
  const double elements = static_cast<double>(work.n) * static_cast<double>(work.k);
  const double cost = found->second.constant_ns + found->second.bytes * elements / chip.dram;
  const double least =
      std::max(flops(work) / chip.rate(work.compute), bytes_moved(work) / chip.dram);
  const auto reduced = [&](double ns) { return std::min(ns, std::max(ns - cost, least)); };
  return {reduced(whole.ns), reduced(whole.low_ns), reduced(whole.high_ns)};
}

}  // namespace maya::estimate
