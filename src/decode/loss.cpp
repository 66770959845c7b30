// Negative log likelihood: the pick of the target after a log-softmax.
#include <algorithm>

#include "decode/operands.h"

namespace maya::decode {

Made prepare_loss(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (!starts_with(leaf, "nll_loss")) return nullptr;
  Signature signature(kernel, name);
  DType dtype = template_dtype(name, 0, DType::f32);
  bool backward = contains(leaf, "backward");
  const std::vector<std::size_t>& integers = signature.integers();
  bool spatial = starts_with(leaf, "nll_loss2d"), no_reduce = contains(leaf, "no_reduce");
  bool one = ends_with(leaf, "_1d");
  return make(signature.key(kernel), [=](const Arguments& a, Decoded& d) {
    std::int64_t rows = 1, cols = 1;
    if (integers.empty()) {
      rows = 1;
    } else if (spatial && !no_reduce) {
      // (…, classes, map elements, blocks per sample, ignore)
      std::int64_t blocks = integers.size() > 2 ? a.integer(integers[2]) : 1;
      cols = a.integer(integers[0]);
      rows = a.integer(integers.size() > 1 ? integers[1] : integers[0]) *
             std::max<std::int64_t>(
                 1, static_cast<std::int64_t>(a.grid(0)) / std::max<std::int64_t>(1, blocks));
    } else if (one && !no_reduce) {
      cols = a.integer(integers[0]);
    } else {
      rows = a.integer(integers[0]);
      if (integers.size() > 1) cols = a.integer(integers[1]);
    }
    if (backward) {
      // The gradient was cleared before: one element per row is stored.
      Scatter work;
      work.rows = rows;
      work.cols = 1;
      work.table_rows = cols;
      work.dtype = dtype;
      d.op.work = work;
    } else {
      CrossEntropy work;
      work.rows = rows;
      work.cols = cols;
      work.dtype = dtype;
      d.op.work = work;
    }
  });
}

}  // namespace maya::decode
