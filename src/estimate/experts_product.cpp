#include "estimate/experts_product.h"

#include <algorithm>
#include <cmath>

namespace maya::estimate {
namespace {

Op pass(double elements, double read, double written) {
  Pointwise work;
  work.elements = std::llround(elements);
  work.bytes_read = std::llround(read), work.bytes_written = std::llround(written);
  work.dtype = DType::bf16;
  Op op;
  op.work = work;
  return op;
}

}  // namespace

ExpertsLayer layer_of(const Op& op, const Gemm& product) {
  constexpr std::int64_t matrices = 3;  // gate, up and down
  ExpertsLayer out;
  const bool second = product.part == ExpertsPart::second;
  const std::int64_t hidden = second ? product.n : product.k;
  const std::int64_t inner = std::max<std::int64_t>(1, second ? product.k : product.n / 2);
  out.share = second ? 1. / matrices : 1 - 1. / matrices;
  const std::int64_t all = product.m * product.ranks, top = std::max<std::int64_t>(1, product.top);
  const std::int64_t tokens = std::max<std::int64_t>(1, all / top);

  Gemm layer = product;
  layer.n = matrices * inner, layer.k = hidden;
  layer.groups = product.experts;
  layer.experts = 0;
  out.layer.work = layer;
  constexpr std::int64_t block = 128;  // of FP8 in blocks
  const bool blocks = bytes(product.a) == 1 && product.scale_block == block;
  out.layer.name = op.name + (blocks ? " fp8_block" : "") +
                   " moe tokens=" + std::to_string(tokens) +
                   " experts=" + std::to_string(product.experts * product.ranks) +
                   " top=" + std::to_string(top) + " matrices=" + std::to_string(matrices) +
                   " skew=-1 hit=" + std::to_string(product.groups);
  // One word, and the first that tells the kind of kernel.
  std::string kernel = op.name.substr(0, op.name.find_first_of(" <("));
  if (!kernel.empty()) out.layer.name += " kernel=" + kernel;

  const auto rows = static_cast<double>(product.m), width = static_cast<double>(inner);
  const auto tokens_here = static_cast<double>(tokens), model = static_cast<double>(hidden);
  constexpr double size = 2;
  out.around.push_back(pass(rows * width, 2 * rows * width * size, rows * width * size));
  out.around.push_back(pass(tokens_here * model, rows * model * size, tokens_here * model * size));
  out.around.push_back(pass(rows, rows * 4, rows * 4));
  if (bytes(product.a) < size) {
    out.around.push_back(
        pass(tokens_here * model, tokens_here * model * size, tokens_here * model));
    out.around.push_back(pass(rows * width, rows * width * size, rows * width));
  }
  return out;
}

}  // namespace maya::estimate
