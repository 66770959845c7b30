// Softmax: ATen's persistent (warp), block, shared-memory, register and spatial kernels, and the
// scaled, masked ones of Megatron and Apex.
#include <cmath>

#include "decode/moves.h"

namespace maya::decode {
namespace {

Made softmax(const Kernel& kernel, const Name& name, DType in, DType out, Direction direction,
             bool log, bool masked, const std::function<void(const Arguments&, Softmax&)>& sizes) {
  auto count = [sizes](const Arguments& a) {
    Softmax work;
    sizes(a, work);
    return work.rows * work.cols;
  };
  auto body = [=](const Arguments& a, Decoded& d) {
    Softmax work;
    work.in = in;
    work.out = out;
    work.direction = direction;
    work.log = log;
    work.masked = masked;
    sizes(a, work);
    d.op.work = work;
    double rows = static_cast<double>(work.rows) * static_cast<double>(work.cols);
    // First pointer is the destination, the next the source(s).
    write(d, a.pointer(0), static_cast<std::int64_t>(rows * bytes(out)));
    read(d, a.pointer(1), static_cast<std::int64_t>(rows * bytes(in)));
    if (direction != Direction::forward || work.cols < 1) return;
    // Of scores nobody knows, one is as probable as another.
    const auto cols = static_cast<double>(work.cols);
    d.semantics.kind = Semantics::Kind::suppose;
    d.semantics.scalar = log ? -std::log(cols) : 1 / cols;
    d.semantics.outputs = {line(a.pointer(0), out, work.rows * work.cols)};
  };
  const std::int64_t few = direction == Direction::forward ? most_supposed : 0;
  return std::make_unique<RuleDecoder>(scalars(kernel, name), body, few, count);
}

}  // namespace

Made prepare_softmax(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  bool backward = contains(leaf, "ackward");
  Direction direction = backward ? Direction::backward : Direction::forward;
  bool log = contains(kernel.demangled, "LogSoftMax");

  if (leaf == "softmax_warp_forward" || leaf == "softmax_warp_backward") {
    // forward <in, out, acc, log2_elements, is_log, is_masked, warp>(dst, src, batch, stride,
    // count, …) backward <in, out, acc, log2_elements, is_log, …>(gin, grad, output, batch, stride,
    // count, …)
    DType in = template_dtype(name, 0, DType::f32), out = template_dtype(name, 1, DType::f32);
    std::size_t first = backward ? 3 : 2;
    bool masked = template_number(name, 5, 0) != 0;
    return softmax(kernel, name, in, out, direction, template_number(name, 4, 0) != 0, masked,
                   [first](const Arguments& a, Softmax& work) {
                     work.rows = a.integer(first);
                     work.cols = a.integer(first + 2);
                   });
  }
  if (starts_with(leaf, "cunn_SoftMax")) {
    // <ILP, in, acc, out, Epilogue>(dst, src, [src,] classes), one block per row; Reg has no ILP.
    std::size_t first =
        dtype_of(name.templates.empty() ? "" : name.templates[0]) == DType::unknown ? 1 : 0;
    DType in = template_dtype(name, first, DType::f32),
          out = template_dtype(name, first + 2, DType::f32);
    std::size_t classes = name.parameters.empty() ? (backward ? 3 : 2) : name.parameters.size() - 1;
    // The greatest, the sum, the result. Smem and Reg keep the row.
    const std::int32_t reads = leaf == "cunn_SoftMaxForward" ? 3 : 1;
    return softmax(kernel, name, in, out, direction, log, false,
                   [classes, reads](const Arguments& a, Softmax& work) {
                     work.rows = static_cast<std::int64_t>(a.grid(0));
                     work.cols = a.integer(classes);
                     work.reads = reads;
                   });
  }
  if (starts_with(leaf, "cunn_SpatialSoftMax")) {
    // <in, acc, out, index, Epilogue>(dst, src, [src,] outer, dim, inner)
    DType in = template_dtype(name, 0, DType::f32), out = template_dtype(name, 2, DType::f32);
    std::size_t first = backward ? 3 : 2;
    return softmax(kernel, name, in, out, direction, log, false,
                   [first](const Arguments& a, Softmax& work) {
                     work.rows = a.integer(first) * a.integer(first + 2);
                     work.cols = a.integer(first + 1);
                   });
  }
  if (contains(leaf, "scaled") && contains(leaf, "softmax_warp")) {
    // Megatron/Apex: <in, out, acc, log2>(dst, src, [mask,] scale, micro_batch, [stride,]
    // element_count …)
    DType in = template_dtype(name, 0, DType::f16), out = template_dtype(name, 1, DType::f16);
    int log2 = static_cast<int>(template_number(name, 3, 10));
    bool masked = contains(leaf, "masked");
    std::vector<std::size_t> integers;
    for (std::size_t i = 0; i < name.parameters.size(); ++i)
      if (is_integer_scalar(name.parameters[i])) integers.push_back(i);
    return softmax(
        kernel, name, in, out, direction, false, masked, [=](const Arguments& a, Softmax& work) {
          std::int64_t limit = std::int64_t{1} << log2, cols = 0;
          for (std::size_t i : integers) {
            std::int64_t v = a.integer(i);
            if (v <= limit && v > limit / 2) cols = v;
          }
          work.cols = cols ? cols : limit;
          // A warp takes two rows up to 128 columns; the grid covers all rows.
          std::int64_t per_warp = limit <= 128 ? 2 : 1;
          work.rows = static_cast<std::int64_t>(a.geometry().blocks() * a.block(1)) * per_warp;
        });
  }
  if (leaf == "cuda_sparse_coo_softmax_kernel" ||
      leaf == "cuda_sparse_coo_softmax_backward_kernel") {
    DType t = template_dtype(name, 0, DType::f32);
    return softmax(kernel, name, t, t, direction, false, false,
                   [](const Arguments& a, Softmax& work) {
                     work.rows = a.integer(1);
                     work.cols = std::max<std::int64_t>(1, a.integer(4));
                   });
  }
  return nullptr;
}

}  // namespace maya::decode
