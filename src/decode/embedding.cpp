// Embedding tables: backward by feature, by segments, and bags.
#include <algorithm>

#include "decode/operands.h"

namespace maya::decode {
namespace {

Made scatter(const Kernel& kernel, const Signature& signature, DType dtype, DType index,
             std::size_t rows, std::size_t cols, bool atomic = false) {
  return make(signature.key(kernel), [=](const Arguments& a, Decoded& d) {
    Scatter work;
    work.rows = a.integer(rows);
    work.cols = std::max<std::int64_t>(1, a.integer(cols));
    work.dtype = dtype;
    work.index = index;
    work.atomic = atomic;
    d.op.work = work;
  });
}

}  // namespace

Made prepare_embedding(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  Signature signature(kernel, name);
  DType dtype = template_dtype(name, 0, DType::f32), index = DType::i64;
  if (!name.templates.empty() && dtype_of(name.templates.back()) == DType::i32) index = DType::i32;

  if (leaf == "embedding_backward_feature_kernel")
    return scatter(kernel, signature, dtype, index, 3, 4);
  if (leaf == "compute_grad_weight") return scatter(kernel, signature, dtype, index, 3, 4);
  if (leaf == "compute_grad_weight_bags") return scatter(kernel, signature, dtype, index, 4, 5);
  if (leaf == "compute_grad_weight_atomic_accumulate")
    return scatter(kernel, signature, dtype, index, 3, 4, true);
  if (leaf == "EmbeddingBag_accGradParametersKernel_max")
    return scatter(kernel, signature, dtype, index, 4, 3, true);
  if (leaf == "sum_and_scatter") {
    // One thread per segment and column; how many segments there are is on the device.
    return make(signature.key(kernel), [=](const Arguments& a, Decoded& d) {
      Scatter work;
      work.cols = std::max<std::int64_t>(1, a.integer(2));
      work.rows =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(a.geometry().threads()) / work.cols);
      work.dtype = dtype;
      work.index = index;
      d.op.work = work;
    });
  }
  if (starts_with(leaf, "EmbeddingBag_updateOutputKernel")) {
    return make(signature.key(kernel), [=](const Arguments& a, Decoded& d) {
      Gather work;
      work.rows = a.integer(5);
      work.cols = std::max<std::int64_t>(1, a.integer(7));
      work.dtype = dtype;
      work.index = index;
      d.op.work = work;
    });
  }
  if (leaf == "_embedding_bag_per_sample_weights_backward_kernel") {
    return make(signature.key(kernel), [=](const Arguments& a, Decoded& d) {
      Gather work;
      work.rows = a.integer(8);
      work.cols = std::max<std::int64_t>(1, a.integer(9));
      work.dtype = dtype;
      work.index = index;
      d.op.work = work;
    });
  }
  return nullptr;
}

}  // namespace maya::decode
