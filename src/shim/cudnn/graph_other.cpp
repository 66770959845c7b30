// Graphs of normalization, of one matrix product, and whatever else: reductions, resampling,
// pointwise chains.
#include <algorithm>
#include <set>

#include "shim/cudnn/graph.h"

namespace maya::shim::cudnn {
namespace {

NormKind norm_kind(std::int64_t mode) {
  switch (mode) {
    case CUDNN_INSTANCE_NORM:
      return NormKind::instance;
    case CUDNN_BATCH_NORM:
      return NormKind::batch;
    case CUDNN_GROUP_NORM:
      return NormKind::group;
    case CUDNN_RMS_NORM:
      return NormKind::rms;
    default:
      return NormKind::layer;
  }
}

// Tensors of the graph that live in memory, each once.
struct Traffic {
  std::int64_t read{}, written{}, largest{};
  int inputs{}, outputs{};
  DType dtype{DType::f32};
};
Traffic traffic(const Node& graph) {
  Traffic sum;
  std::set<std::int64_t> seen;
  auto add = [&](const TensorView& view, bool output) {
    if (view.is_virtual || view.by_value || !seen.insert(view.uid).second) return;
    auto bytes = static_cast<std::int64_t>(bytes_of(dtype_of(view.type), view.elements()));
    (output ? sum.written : sum.read) += bytes;
    ++(output ? sum.outputs : sum.inputs);
    if (view.elements() > sum.largest)
      sum.largest = view.elements(), sum.dtype = dtype_of(view.type);
  };
  for (const Node* operation : operations(graph)) {
    for (const TensorView& view : outputs(*operation)) add(view, true);
    for (const TensorView& view : inputs(*operation)) add(view, false);
  }
  return sum;
}

ReduceKind reduce_kind(std::int64_t op) {
  switch (op) {
    case CUDNN_REDUCE_TENSOR_ADD:
      return ReduceKind::sum;
    case CUDNN_REDUCE_TENSOR_MUL:
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return ReduceKind::product;
    case CUDNN_REDUCE_TENSOR_MIN:
      return ReduceKind::min;
    case CUDNN_REDUCE_TENSOR_MAX:
    case CUDNN_REDUCE_TENSOR_AMAX:
      return ReduceKind::max;
    case CUDNN_REDUCE_TENSOR_AVG:
      return ReduceKind::mean;
    case CUDNN_REDUCE_TENSOR_NORM1:
    case CUDNN_REDUCE_TENSOR_NORM2:
      return ReduceKind::norm;
    default:
      return ReduceKind::other;
  }
}

std::optional<Work> as_pool(const Node& operation) {
  bool forward = operation.kind == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR;
  auto in = operand(operation, forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC
                                       : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC);
  auto out = operand(operation, forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC
                                        : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC);
  if (!in || !out) return {};
  Pool work;
  work.inputs = in->elements(), work.outputs = out->elements();
  work.dtype = dtype_of(in->type);
  work.direction = forward ? Direction::forward : Direction::backward;
  work.channels_last = in->channels_last();
  if (const Node* resample = operation.child(forward ? CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC
                                                     : CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC)) {
    const Attribute* window = resample->find(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
    // Plain integers or fractions (numerator, denominator).
    std::size_t step = window && window->type == CUDNN_TYPE_FRACTION ? 2 : 1;
    auto dims = resample->integers(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
    for (std::size_t i = 0; i < dims.size(); i += step)
      work.window *= static_cast<std::int32_t>(std::max<std::int64_t>(1, dims[i]));
  }
  return work;
}

std::optional<Work> as_grouped(const Node& operation, bool tf32) {
  auto token = operand(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC);
  auto weight = operand(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC);
  auto output = operand(operation, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC);
  if (!token || !weight || !output || output->rank < 2 || weight->rank < 3) return {};
  Gemm work;
  work.m = output->elements() / output->dims[static_cast<std::size_t>(output->rank - 1)];
  work.n = output->dims[static_cast<std::size_t>(output->rank - 1)];
  work.k = token->dims[static_cast<std::size_t>(token->rank - 1)];
  work.groups = weight->dims[0];
  work.a = dtype_of(token->type), work.b = dtype_of(weight->type), work.d = dtype_of(output->type);
  work.compute = rate_class(work.a, tf32);
  work.lda = work.k, work.ldb = work.n, work.ldd = work.n;
  return work;
}

}  // namespace

std::optional<Work> as_normalization(const Node& graph) {
  for (const Node* operation : operations(graph)) {
    bool forward = operation->kind == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR;
    if (!forward && operation->kind != CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR) continue;
    auto x = operand(*operation, forward ? CUDNN_ATTR_OPERATION_NORM_FWD_XDESC
                                         : CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
    auto scale = operand(*operation, forward ? CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC
                                             : CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC);
    if (!x) return {};
    Normalization work;
    work.kind = norm_kind(operation->integer(forward ? CUDNN_ATTR_OPERATION_NORM_FWD_MODE
                                                     : CUDNN_ATTR_OPERATION_NORM_BWD_MODE));
    bool per_channel = work.kind == NormKind::batch || work.kind == NormKind::instance;
    if (per_channel)
      work.rows = x->dims[1] * (work.kind == NormKind::instance ? x->dims[0] : 1);
    else
      work.rows = x->elements() /
                  std::max<std::int64_t>(1, scale ? scale->elements()
                                                  : x->dims[static_cast<std::size_t>(x->rank - 1)]);
    work.cols = work.rows ? x->elements() / work.rows : 0;
    work.dtype = dtype_of(x->type);
    work.direction = forward ? Direction::forward : Direction::backward;
    work.channels_last = x->channels_last();
    return work;
  }
  return {};
}

std::optional<Work> as_matmul(const Node& graph, bool tf32) {
  for (const Node* operation : operations(graph)) {
    if (operation->kind == CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR)
      return as_grouped(*operation, tf32);
    if (operation->kind != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) continue;
    auto a = operand(*operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    auto b = operand(*operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    auto c = operand(*operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    if (!a || !b || !c || c->rank < 2 || a->rank != c->rank || b->rank != c->rank) return {};
    auto row = static_cast<std::size_t>(c->rank - 2), col = row + 1;
    // Tensors are row-major by nature; column-major, as the op speaks, the product is C'ᵀ =
    // B'ᵀ·A'ᵀ.
    Gemm work;
    work.m = c->dims[col], work.n = c->dims[row], work.k = a->dims[col];
    work.batch =
        std::max<std::int64_t>(1, c->elements() / std::max<std::int64_t>(1, work.m * work.n));
    work.a = dtype_of(b->type), work.b = dtype_of(a->type), work.d = dtype_of(c->type);
    work.transpose_a = b->strides[col] != 1, work.transpose_b = a->strides[col] != 1;
    work.lda = b->strides[work.transpose_a ? col : row],
    work.ldb = a->strides[work.transpose_b ? col : row];
    work.ldd = c->strides[row];
    work.compute = rate_class(work.a, tf32);
    work.epilogue = epilogue_of(graph);
    for (const Node* after : operations(graph))  // the type in memory is that of the last result
      for (const TensorView& view : outputs(*after))
        if (!view.is_virtual && view.elements() == c->elements()) work.d = dtype_of(view.type);
    return work;
  }
  return {};
}

std::optional<Work> as_elementwise(const Node& graph) {
  auto all = operations(graph);
  for (const Node* operation : all) {
    if (operation->kind == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR ||
        operation->kind == CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR)
      return as_pool(*operation);
    if (operation->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      auto x = operand(*operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
      auto y = operand(*operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
      const Node* reduction = operation->child(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
      if (!x || !y) return {};
      Reduction work;
      work.inputs = x->elements(), work.outputs = y->elements();
      work.in = dtype_of(x->type), work.out = dtype_of(y->type);
      work.kind = reduction ? reduce_kind(reduction->integer(CUDNN_ATTR_REDUCTION_OPERATOR))
                            : ReduceKind::sum;
      auto last = static_cast<std::size_t>(x->rank - 1);
      work.inner = x->rank > 0 && y->dims[last] != x->dims[last];
      return work;
    }
  }
  Traffic sum = traffic(graph);
  Pointwise work;
  work.elements = sum.largest;
  work.bytes_read = sum.read, work.bytes_written = sum.written;
  work.inputs = sum.inputs, work.outputs = sum.outputs;
  work.dtype = sum.dtype;
  work.flops_per_element = static_cast<std::int32_t>(all.size());
  return work;
}

}  // namespace maya::shim::cudnn
