#include "estimate/memory_ops.h"

#include <algorithm>
#include <cmath>

namespace maya::estimate {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

struct Visitor {
  const Op& op;
  using Out = std::optional<MemoryOp>;

  // How often the threads of a launch take a row each; 0 where the launch is not known.
  double rows_of_a_thread(double rows) const {
    const double threads = static_cast<double>(op.geometry.threads());
    return threads > 0 ? std::ceil(rows / threads) : 0;
  }

  // Bytes as the vocabulary counts them: each operand once.
  MemoryShape plain(double elements = 0) const {
    MemoryShape s;
    s.read = bytes_read(op.work);
    s.written = bytes_written(op.work);
    s.elements = elements;
    return s;
  }

  Out operator()(const Pointwise& w) const {
    MemoryShape s = plain(d(w.elements) * (1 + 0.25 * std::max(0, w.flops_per_element - 1)));
    if (s.read + s.written <= 0) {
      s.read = d(w.elements) * w.inputs * bytes(w.dtype);
      s.written = d(w.elements) * w.outputs * bytes(w.dtype);
    }
    if (!w.strided) return MemoryOp{MemoryFamily::pointwise, s};
    // What is paid for is the place of each operand's element, not the arithmetic on it.
    s.elements = d(w.elements) * (w.inputs + w.outputs);
    return MemoryOp{MemoryFamily::strided, s};
  }
  Out operator()(const Normalization& w) const {
    using F = MemoryFamily;
    const bool backward = w.direction != Direction::forward;
    MemoryShape s = plain(d(w.rows) * d(w.cols));
    s.rows = d(w.rows), s.cols = d(w.cols);
    // The second look at the input, after the statistics.
    s.again = d(w.rows) * d(w.cols) * bytes(w.dtype) * (backward ? 2 : 1);
    switch (w.kind) {
      case NormKind::rms:
      case NormKind::l2:
        return MemoryOp{backward ? F::rms_norm_backward : F::rms_norm_forward, s};
      case NormKind::batch:
      case NormKind::instance:
        // A block per channel when channels are apart: few of them do not fill the memory's pipes.
        // Else the work is spread evenly.
        if (w.channels_last) s.rows = 0;
        s.cols *= bytes(w.dtype) / 4;
        return MemoryOp{backward ? F::batch_norm_backward : F::batch_norm_forward, s};
      case NormKind::group:
        return MemoryOp{backward ? F::group_norm_backward : F::group_norm_forward, s};
      case NormKind::weight_reduction:
        s.rows = 0, s.again = 0;
        s.read = 2 * d(w.rows) * d(w.cols) * bytes(w.dtype);
        return MemoryOp{F::weight_reduction, s};
      default:
        return MemoryOp{backward ? F::layer_norm_backward : F::layer_norm_forward, s};
    }
  }
  Out operator()(const Softmax& w) const {
    MemoryShape s = plain(d(w.rows) * d(w.cols));
    s.rows = d(w.rows), s.cols = d(w.cols);
    // Rows too long for registers (1024) or shared memory are read again.
    s.again = w.cols > 1024 ? s.read : 0;
    s.rereads = d(w.reads - 1) * s.read;
    return MemoryOp{w.direction == Direction::forward ? MemoryFamily::softmax_forward
                                                      : MemoryFamily::softmax_backward,
                    s};
  }
  Out operator()(const CrossEntropy& w) const {
    MemoryShape s =
        plain(w.fused || w.direction != Direction::forward ? d(w.rows) * d(w.cols) : d(w.rows));
    if (w.fused)
      s.rows = d(w.rows), s.cols = d(w.cols), s.again = s.read;
    else  // a row's target, and what it points at; ATen gives all rows to one block
      s.loads_in_turn = 2 * rows_of_a_thread(d(w.rows));
    return MemoryOp{w.direction == Direction::forward ? MemoryFamily::cross_entropy_forward
                                                      : MemoryFamily::cross_entropy_backward,
                    s};
  }
  Out operator()(const Reduction& w) const {
    return MemoryOp{MemoryFamily::reduction, plain(d(w.inputs))};
  }
  Out operator()(const Gather& w) const {
    return MemoryOp{MemoryFamily::gather, plain(d(w.rows) * d(w.cols))};
  }
  Out operator()(const Scatter& w) const {
    return MemoryOp{MemoryFamily::scatter, plain(d(w.rows) * d(w.cols))};
  }
  Out operator()(const Sort& w) const {
    // Radix sort: one pass over keys and values per 8 bits, a histogram before. Top-k: a few
    // passes of selection over the keys.
    MemoryShape s = plain(d(w.segments) * d(w.elements));
    const double passes = w.top > 0 ? 4 : w.key_bytes;
    s.elements *= passes;
    s.read *= passes + (w.top > 0 ? 0 : 1);
    if (w.top == 0) s.written *= passes;
    return MemoryOp{MemoryFamily::sort, s};
  }
  Out operator()(const Scan& w) const { return MemoryOp{MemoryFamily::scan, plain(d(w.elements))}; }
  Out operator()(const Random& w) const {
    return MemoryOp{w.dropout ? MemoryFamily::dropout : MemoryFamily::random, plain(d(w.elements))};
  }
  Out operator()(const Pool& w) const {
    const bool backward = w.direction != Direction::forward;
    MemoryShape s = plain((backward ? d(w.inputs) : d(w.outputs)) * std::max(1, w.window));
    return MemoryOp{backward ? MemoryFamily::pool_backward : MemoryFamily::pool_forward, s};
  }
  Out operator()(const OptimizerStep& w) const {
    MemoryShape s = plain(d(w.elements));
    if (s.read + s.written <= 0) {
      // Parameter, gradient and two moments; SGD one moment; f32 unless the type says otherwise.
      const bool two = w.kind == OptimizerKind::adam || w.kind == OptimizerKind::adamw ||
                       w.kind == OptimizerKind::lamb;
      s.read = d(w.elements) * bytes(w.dtype) * (two ? 4 : 3);
      s.written = d(w.elements) * bytes(w.dtype) * (two ? 3 : 2);
    }
    return MemoryOp{w.fused ? MemoryFamily::optimizer_fused : MemoryFamily::optimizer_foreach, s};
  }
  Out operator()(const Copy& w) const {
    if (w.direction != CopyDirection::device) return std::nullopt;
    return MemoryOp{MemoryFamily::copy, plain(d(w.bytes) / 16)};
  }
  Out operator()(const Fill& w) const {
    return MemoryOp{MemoryFamily::fill, plain(d(w.bytes) / 16)};
  }
  Out operator()(const Sparse& w) const {
    MemoryShape s = plain(d(w.nonzeros) * d(w.n));
    // Gathered rows of the dense operand: each nonzero reads one, mostly not from cache.
    s.again = d(w.nonzeros) * d(w.n) * bytes(w.dtype);
    return MemoryOp{MemoryFamily::sparse, s};
  }
  Out operator()(const Fft& w) const {
    // About twelve bits of a dimension per pass through memory; n is the product of the dimensions.
    MemoryShape s = plain(d(w.n) * d(w.batch) * std::log2(std::max<double>(2, d(w.n))));
    const double dimensions = std::max(1, w.rank);
    const double bits = std::log2(std::max<double>(2, d(w.n))) / dimensions;
    const double passes = std::max(1.0, std::ceil(bits / 12)) * dimensions;
    s.read *= passes, s.written *= passes;
    return MemoryOp{MemoryFamily::fft, s};
  }
  Out operator()(const OtherKernel& w) const {
    MemoryShape s = plain();
    if (w.bytes_touched <= 0) {
      // No idea of the data: each thread of the launch reads and writes one 16-byte vector.
      const double threads = static_cast<double>(op.geometry.threads());
      s.read = 16 * threads, s.written = 16 * threads;
    }
    s.elements = (s.read + s.written) / 8;
    return MemoryOp{MemoryFamily::other, s};
  }
  template <class T>
  Out operator()(const T&) const {
    return std::nullopt;
  }
};

// torch's own batch norm of channels that are apart, for half models: a block of 512 threads per
// channel as cuDNN's, but an element at a time.
void native_batch_norm(const Op& op, MemoryOp& out) {
  if (const auto* w = std::get_if<Reduction>(&op.work);
      w && op.name.find("batch_norm_collect_statistics_kernel") != std::string::npos) {
    out.family = MemoryFamily::batch_norm_statistics;
    out.shape.rows = std::max(1.0, d(w->outputs) / 2);
    out.shape.cols = d(w->inputs) / out.shape.rows;
  } else if (op.name.find("batch_norm_backward_kernel") != std::string::npos) {
    out.family = MemoryFamily::batch_norm_native_backward;
    out.shape.cols *= 4 / bytes(std::get<Normalization>(op.work).dtype);
  }
}

}  // namespace

std::optional<MemoryOp> memory_op(const Op& op) {
  auto out = std::visit(Visitor{op}, op.work);
  if (!out) return out;
  if (out->family == MemoryFamily::reduction || out->family == MemoryFamily::batch_norm_backward)
    native_batch_norm(op, *out);
  if (op.name.compare(0, 6, "vllm::") != 0) return out;
  const std::string_view kernel = std::string_view(op.name).substr(6);
  if (kernel.starts_with("rms_norm")) out->family = MemoryFamily::vllm_rms_norm;
  if (kernel.starts_with("silu_and_mul")) out->family = MemoryFamily::vllm_silu_and_mul;
  if (kernel.starts_with("rotary")) out->family = MemoryFamily::vllm_rotary;
  if (kernel.starts_with("embedding")) out->family = MemoryFamily::vllm_embedding;
  return out;
}

}  // namespace maya::estimate
