// FLOPs and bytes of each kind of work.
#include "maya/op.h"

#include <algorithm>
#include <cmath>

namespace maya {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Work>> kKinds{
    "other_kernel",  "gemm",    "convolution",   "attention",
    "normalization", "softmax", "cross_entropy", "pointwise",
    "reduction",     "gather",  "scatter",       "sort",
    "scan",          "random",  "pool",          "optimizer_step",
    "copy",          "fill",    "collective",    "point_to_point",
    "rnn",           "fft",     "solver",        "sparse",
    "triton_kernel"};

template <std::size_t... I>
Work work_at(std::size_t index, std::index_sequence<I...>) {
  Work work;
  ((I == index ? void(work.emplace<I>()) : void()), ...);
  return work;
}

double d(std::int64_t v) { return static_cast<double>(v); }
bool backward(Direction direction) { return direction != Direction::forward; }
double norm_passes(const Normalization& w) { return backward(w.direction) ? 1 : 0; }

double conv_input(const Convolution& w) { return d(w.n) * d(w.c) * d(w.d) * d(w.h) * d(w.w); }
double conv_output(const Convolution& w) {
  return d(w.n) * d(w.k) * d(w.out_d()) * d(w.out_h()) * d(w.out_w());
}
double conv_weight(const Convolution& w) {
  return d(w.k) * d(w.c) / std::max(1, w.groups) * w.kd * w.kh * w.kw;
}
double rnn_weight(const Rnn& w) {
  double first = d(w.input) + d(w.hidden);
  double later = d(w.hidden) * w.directions + d(w.hidden);
  return w.gates * d(w.hidden) * w.directions * (first + later * (w.layers - 1));
}

struct Flops {
  double operator()(const OtherKernel&) const { return 0; }
  double operator()(const Gemm& w) const { return 2 * d(w.m) * d(w.n) * d(w.k) * d(w.batch); }
  double operator()(const Convolution& w) const {
    double one = 2 * conv_output(w) * d(w.c) / std::max(1, w.groups) * w.kd * w.kh * w.kw;
    return w.direction == Direction::backward ? 2 * one : one;
  }
  double operator()(const Attention& w) const {
    if (w.short_batch > 0) return (*this)(w.prompts()) + (*this)(w.tokens());
    std::int64_t dv = w.head_dim_v ? w.head_dim_v : w.head_dim;
    double forward = 2 * d(w.batch) * d(w.heads) * attention_pairs(w) * (d(w.head_dim) + d(dv));
    // The forward pass has two products. The backward pass has five: the scores are computed again,
    // and the gradients of q, k, v and p.
    return backward(w.direction) ? 2.5 * forward : forward;
  }
  double operator()(const Normalization& w) const {
    double n = d(w.rows) * d(w.cols);
    double each = w.kind == NormKind::rms || w.kind == NormKind::l2 ? 4 : 7;
    return n * (backward(w.direction) ? 2 * each : each) + (w.fused_add ? n : 0);
  }
  double operator()(const Softmax& w) const { return 5 * d(w.rows) * d(w.cols); }
  double operator()(const CrossEntropy& w) const {
    return w.fused ? 5 * d(w.rows) * d(w.cols) : d(w.rows);
  }
  double operator()(const Pointwise& w) const { return d(w.elements) * w.flops_per_element; }
  double operator()(const Reduction& w) const { return d(w.inputs); }
  double operator()(const Gather&) const { return 0; }
  double operator()(const Scatter& w) const { return w.atomic ? d(w.rows) * d(w.cols) : 0; }
  double operator()(const Sort&) const { return 0; }
  double operator()(const Scan& w) const { return d(w.elements); }
  double operator()(const Random& w) const { return d(w.elements) * (w.dropout ? 2 : 0); }
  double operator()(const Pool& w) const { return d(w.outputs) * w.window; }
  double operator()(const OptimizerStep& w) const {
    switch (w.kind) {
      case OptimizerKind::adam:
      case OptimizerKind::adamw:
        return 12 * d(w.elements);
      case OptimizerKind::lamb:
        return 18 * d(w.elements);
      case OptimizerKind::sgd:
        return 4 * d(w.elements);
      default:
        return 6 * d(w.elements);
    }
  }
  double operator()(const Copy&) const { return 0; }
  double operator()(const Fill&) const { return 0; }
  double operator()(const Collective&) const { return 0; }
  double operator()(const PointToPoint&) const { return 0; }
  double operator()(const Rnn& w) const {
    double forward = 2 * d(w.seq) * d(w.batch) * rnn_weight(w);
    return w.direction == Direction::backward ? 2 * forward : forward;
  }
  double operator()(const Fft& w) const {
    double n = d(w.n);
    double full = 5 * n * std::log2(std::max(2.0, n)) * d(w.batch);
    return w.real ? full / 2 : full;
  }
  double operator()(const Solver& w) const {
    return w.flop_factor * d(w.m) * d(w.n) * d(std::min(w.m, w.n)) * d(w.batch);
  }
  double operator()(const Sparse& w) const { return 2 * d(w.nonzeros) * d(w.n); }
  double operator()(const TritonKernel& w) const { return d(w.flops) + d(w.tensor_flops); }
};

struct Read {
  double operator()(const OtherKernel& w) const { return d(w.bytes_touched) / 2; }
  double operator()(const Gemm& w) const {
    double groups = d(std::max<std::int64_t>(1, w.groups));
    double a = d(w.m) * d(w.k) * bytes(w.a);
    double b = d(w.k) * d(w.n) * groups * bytes(w.b);
    double c = w.accumulate ? d(w.m) * d(w.n) * bytes(w.d) : 0;
    return d(w.batch) * (a + b + c);
  }
  double operator()(const Convolution& w) const {
    double b = bytes(w.dtype);
    switch (w.direction) {
      case Direction::forward:
        return b * (conv_input(w) + conv_weight(w));
      case Direction::data_gradient:
        return b * (conv_output(w) + conv_weight(w));
      case Direction::weight_gradient:
        return b * (conv_output(w) + conv_input(w));
      case Direction::backward:
        return b * (2 * conv_output(w) + conv_weight(w) + conv_input(w));
    }
    return 0;
  }
  double operator()(const Attention& w) const {
    if (w.short_batch > 0) return (*this)(w.prompts()) + (*this)(w.tokens());
    std::int64_t dv = w.head_dim_v ? w.head_dim_v : w.head_dim;
    std::int64_t kv = w.kv_heads ? w.kv_heads : w.heads;
    double q = d(w.heads) * d(w.seq_q) * d(w.head_dim);
    double k = d(kv) * d(w.seq_k) * d(w.head_dim), v = d(kv) * d(w.seq_k) * d(dv);
    double o = d(w.heads) * d(w.seq_q) * d(dv);
    double in = q + k + v + (backward(w.direction) ? 2 * o : 0);
    double statistics = backward(w.direction) ? 8 * d(w.heads) * d(w.seq_q) : 0;
    return d(w.batch) * (in * bytes(w.dtype) + statistics);
  }
  double operator()(const Normalization& w) const {
    double n = d(w.rows) * d(w.cols);
    double tensors = 1 + norm_passes(w) + (w.fused_add ? 1 : 0);
    double weights = w.kind == NormKind::batch ? d(w.rows) : d(w.cols);
    return (n * tensors + 2 * weights) * bytes(w.dtype);
  }
  double operator()(const Softmax& w) const {
    double n = d(w.rows) * d(w.cols);
    return n * bytes(w.in) + (backward(w.direction) ? n * bytes(w.out) : 0) +
           (w.masked ? n * bytes(w.in) : 0);
  }
  double operator()(const CrossEntropy& w) const {
    double n = w.fused || backward(w.direction) ? d(w.rows) * d(w.cols) : d(w.rows);
    if (!w.fused && backward(w.direction)) n = d(w.rows);
    return n * bytes(w.dtype) + 8 * d(w.rows);
  }
  double operator()(const Pointwise& w) const { return d(w.bytes_read); }
  double operator()(const Reduction& w) const { return d(w.inputs) * bytes(w.in); }
  double operator()(const Gather& w) const {
    return d(w.rows) * (d(w.cols) * bytes(w.dtype) + bytes(w.index));
  }
  double operator()(const Scatter& w) const {
    double data = d(w.rows) * d(w.cols) * bytes(w.dtype);
    return data * (w.atomic ? 2 : 1) + d(w.rows) * bytes(w.index);
  }
  double operator()(const Sort& w) const {
    return d(w.segments) * d(w.elements) * (w.key_bytes + (w.top ? 0 : w.value_bytes));
  }
  double operator()(const Scan& w) const { return d(w.bytes_read); }
  double operator()(const Random& w) const {
    return w.dropout ? d(w.elements) * bytes(w.dtype) : 0;
  }
  double operator()(const Pool& w) const {
    return (backward(w.direction) ? d(w.outputs) : d(w.inputs)) * bytes(w.dtype);
  }
  double operator()(const OptimizerStep& w) const { return d(w.bytes_read); }
  double operator()(const Copy& w) const {
    return w.direction == CopyDirection::host_to_device || w.direction == CopyDirection::host
               ? 0
               : d(w.bytes);
  }
  double operator()(const Fill&) const { return 0; }
  double operator()(const Collective& w) const { return d(w.bytes); }
  double operator()(const PointToPoint& w) const { return w.send ? d(w.bytes) : 0; }
  double operator()(const Rnn& w) const {
    double activations = d(w.seq) * d(w.batch) * (d(w.input) + d(w.hidden) * w.directions);
    double factor = backward(w.direction) ? 2 : 1;
    return factor * (activations + rnn_weight(w)) * bytes(w.dtype);
  }
  double operator()(const Fft& w) const {
    return d(w.n) * d(w.batch) * bytes(w.dtype) * (w.real ? 0.5 : 1);
  }
  double operator()(const Solver& w) const { return d(w.m) * d(w.n) * d(w.batch) * bytes(w.dtype); }
  double operator()(const Sparse& w) const {
    return d(w.nonzeros) * (bytes(w.dtype) + 4) + 4 * d(w.rows) +
           d(w.cols) * d(w.n) * bytes(w.dtype);
  }
  double operator()(const TritonKernel& w) const { return d(w.bytes_read); }
};

struct Written {
  double operator()(const OtherKernel& w) const { return d(w.bytes_touched) / 2; }
  double operator()(const Gemm& w) const { return d(w.batch) * d(w.m) * d(w.n) * bytes(w.d); }
  double operator()(const Convolution& w) const {
    double b = bytes(w.dtype);
    switch (w.direction) {
      case Direction::forward:
        return b * conv_output(w);
      case Direction::data_gradient:
        return b * conv_input(w);
      case Direction::weight_gradient:
        return b * conv_weight(w);
      case Direction::backward:
        return b * (conv_input(w) + conv_weight(w));
    }
    return 0;
  }
  double operator()(const Attention& w) const {
    if (w.short_batch > 0) return (*this)(w.prompts()) + (*this)(w.tokens());
    std::int64_t dv = w.head_dim_v ? w.head_dim_v : w.head_dim;
    std::int64_t kv = w.kv_heads ? w.kv_heads : w.heads;
    double q = d(w.heads) * d(w.seq_q) * d(w.head_dim), o = d(w.heads) * d(w.seq_q) * d(dv);
    double k = d(kv) * d(w.seq_k) * d(w.head_dim), v = d(kv) * d(w.seq_k) * d(dv);
    double out = backward(w.direction) ? q + k + v : o;
    double statistics = backward(w.direction) ? 0 : 4 * d(w.heads) * d(w.seq_q);
    return d(w.batch) * (out * bytes(w.dtype) + statistics);
  }
  double operator()(const Normalization& w) const {
    double n = d(w.rows) * d(w.cols) * bytes(w.dtype);
    if (w.kind == NormKind::weight_reduction) return 2 * d(w.cols) * bytes(w.dtype);
    return n * (w.fused_add ? 2 : 1) + 8 * d(w.rows);
  }
  double operator()(const Softmax& w) const { return d(w.rows) * d(w.cols) * bytes(w.out); }
  double operator()(const CrossEntropy& w) const {
    return backward(w.direction) ? d(w.rows) * d(w.cols) * bytes(w.dtype) : 4 * d(w.rows);
  }
  double operator()(const Pointwise& w) const { return d(w.bytes_written); }
  double operator()(const Reduction& w) const { return d(w.outputs) * bytes(w.out); }
  double operator()(const Gather& w) const { return d(w.rows) * d(w.cols) * bytes(w.dtype); }
  double operator()(const Scatter& w) const { return d(w.rows) * d(w.cols) * bytes(w.dtype); }
  double operator()(const Sort& w) const {
    return d(w.segments) * d(w.top ? w.top : w.elements) * (w.key_bytes + w.value_bytes);
  }
  double operator()(const Scan& w) const { return d(w.bytes_written); }
  double operator()(const Random& w) const {
    return d(w.elements) * (bytes(w.dtype) + (w.dropout ? 1 : 0));
  }
  double operator()(const Pool& w) const {
    return (backward(w.direction) ? d(w.inputs) : d(w.outputs)) * bytes(w.dtype);
  }
  double operator()(const OptimizerStep& w) const { return d(w.bytes_written); }
  double operator()(const Copy& w) const {
    return w.direction == CopyDirection::device_to_host || w.direction == CopyDirection::host
               ? 0
               : d(w.bytes);
  }
  double operator()(const Fill& w) const { return d(w.bytes); }
  double operator()(const Collective& w) const { return d(w.bytes); }
  double operator()(const PointToPoint& w) const { return w.send ? 0 : d(w.bytes); }
  double operator()(const Rnn& w) const {
    double out = d(w.seq) * d(w.batch) * d(w.hidden) * w.directions * w.layers;
    double gradient = backward(w.direction) ? rnn_weight(w) : 0;
    return (out + gradient) * bytes(w.dtype);
  }
  double operator()(const Fft& w) const { return d(w.n) * d(w.batch) * bytes(w.dtype); }
  double operator()(const Solver& w) const { return d(w.m) * d(w.n) * d(w.batch) * bytes(w.dtype); }
  double operator()(const Sparse& w) const { return d(w.rows) * d(w.n) * bytes(w.dtype); }
  double operator()(const TritonKernel& w) const { return d(w.bytes_written); }
};

struct ComputeType {
  DType operator()(const Gemm& w) const { return w.compute; }
  DType operator()(const Convolution& w) const { return w.compute; }
  DType operator()(const Attention& w) const { return w.dtype; }
  DType operator()(const Rnn& w) const { return w.dtype; }
  DType operator()(const Solver& w) const { return w.dtype; }
  DType operator()(const TritonKernel& w) const { return w.tensor_flops ? w.dtype : DType::f32; }
  DType operator()(const Fft& w) const { return w.dtype == DType::c128 ? DType::f64 : DType::f32; }
  template <class T>
  DType operator()(const T&) const {
    return DType::f32;
  }
};

}  // namespace

std::string_view kind_name(std::size_t index) {
  return index < kKinds.size() ? kKinds[index] : std::string_view("invalid");
}
std::string_view kind_name(const Work& work) { return kind_name(work.index()); }

std::optional<Work> work_of_kind(std::string_view name) {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == name) return work_at(i, std::make_index_sequence<std::variant_size_v<Work>>{});
  return std::nullopt;
}

double attention_pairs(const Attention& w) {
  const double q = d(w.seq_q), k = d(w.seq_k), window = d(w.window);
  if (!w.causal) return q * (window > 0 ? std::min(k, window) : k);
  // Row i sees k - q + i + 1 keys (bottom-right aligned), at least 0, and no more than the window.
  const double full = std::max(0.0, k - q), ramp = std::min(q, k);
  if (window <= 0 || window >= full + ramp) return q * full + ramp * (ramp + 1) / 2;
  const double rising = std::max(0.0, window - full);  // rows whose keys all lie in the window
  return rising * full + rising * (rising + 1) / 2 + (ramp - rising) * window;
}

double flops(const Work& work) { return std::visit(Flops{}, work); }
double bytes_read(const Work& work) { return std::visit(Read{}, work); }
double bytes_written(const Work& work) { return std::visit(Written{}, work); }
DType compute_type(const Work& work) { return std::visit(ComputeType{}, work); }

}  // namespace maya
