// Operations of the device: kernels, library calls, copies and collectives.
//
// An Op is plain data. It describes what was requested (a GEMM of these sizes, a copy of so many
// bytes), not how long it takes or where it runs. FLOPs and bytes are computed from it alone. Each
// kind of work is a struct of scalars that lists its own fields in `each`, so that the recording,
// CSV, JSON and the command line read and write every kind with the same code.
//
// Sizes are element counts unless the name says bytes. For an op with several outputs,
// Direction::backward means the whole backward kernel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "maya/dtype.h"

namespace maya {

enum class Direction : std::uint8_t { forward, backward, data_gradient, weight_gradient };

enum class Epilogue : std::uint8_t {
  none,
  bias,
  relu,
  gelu,
  bias_relu,
  bias_gelu,
  relu_grad,
  gelu_grad,
  bias_grad,
  other
};
enum class Layout : std::uint8_t { channels_first, channels_last };
enum class AttentionKernel : std::uint8_t { flash2, flash3, cudnn, memory_efficient, other };
enum class NormKind : std::uint8_t { layer, rms, batch, group, instance, weight_reduction, l2 };
enum class ReduceKind : std::uint8_t { sum, mean, max, min, norm, argmax, any, product, other };
enum class OptimizerKind : std::uint8_t { adam, adamw, sgd, lamb, lion, adagrad, rmsprop, other };
enum class CopyDirection : std::uint8_t { device, host_to_device, device_to_host, peer, host };
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  barrier
};
enum class ReduceOp : std::uint8_t { sum, product, max, min, average, other };
// Whose kernels: NCCL's, or the all-reduce of an inference engine's own.
enum class CollectiveLibrary : std::uint8_t { nccl, vllm, sglang, trtllm };
// Which product of a layer of experts: of the tokens with the matrices that lead inside (up, and
// gate), or back.
enum class ExpertsPart : std::uint8_t { unknown, first, second };

// D[m×n] = op(A)[m×k] · op(B)[k×n], column-major as BLAS sees it, `batch` times.
struct Gemm {
  std::int64_t m{}, n{}, k{}, batch{1};
  DType a{DType::f32}, b{DType::f32}, d{DType::f32};
  // Decides the arithmetic rate: f16, bf16, tf32, f8 … run on tensor cores, f32 and f64 do not.
  DType compute{DType::f32};
  bool transpose_a{}, transpose_b{};
  Epilogue epilogue{Epilogue::none};
  bool accumulate{};  // beta != 0: D is read too
  std::int64_t lda{}, ldb{}, ldd{};
  std::int64_t groups{1};  // of a grouped GEMM; m is the sum over the groups
  // A product of a mixture of experts, launched by itself: how many experts lie on this rank (0: it
  // is none), of which `groups` get any of the m rows; how many experts a token is given to; over
  // how many ranks the experts are divided. a: tokens, b: weights.
  std::int64_t experts{}, top{1}, ranks{1};
  ExpertsPart part{};
  bool dealt{};                // which rows go to which expert was known, not assumed
  std::int64_t scale_block{};  // weights along k that share a scale; 0: all of a row or more
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("m", s.m), f("n", s.n), f("k", s.k), f("batch", s.batch), f("a", s.a), f("b", s.b);
    f("d", s.d), f("compute", s.compute), f("transpose_a", s.transpose_a);
    f("transpose_b", s.transpose_b), f("epilogue", s.epilogue), f("accumulate", s.accumulate);
    f("lda", s.lda), f("ldb", s.ldb), f("ldd", s.ldd), f("groups", s.groups);
    f("experts", s.experts), f("top", s.top), f("ranks", s.ranks), f("part", s.part);
    f("dealt", s.dealt), f("scale_block", s.scale_block);
  }
};

// Input n×c×d×h×w, k output channels. 2-D convolutions have d = kd = 1, 1-D also h = kh = 1.
struct Convolution {
  std::int64_t n{}, c{}, d{1}, h{1}, w{1}, k{};
  std::int32_t kd{1}, kh{1}, kw{1};
  std::int32_t stride_d{1}, stride_h{1}, stride_w{1}, pad_d{}, pad_h{}, pad_w{};
  std::int32_t dilation_d{1}, dilation_h{1}, dilation_w{1}, groups{1};
  DType dtype{DType::f32}, compute{DType::f32};
  Layout layout{Layout::channels_first};
  Direction direction{Direction::forward};
  Epilogue epilogue{Epilogue::none};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("n", s.n), f("c", s.c), f("d", s.d), f("h", s.h), f("w", s.w), f("k", s.k), f("kd", s.kd);
    f("kh", s.kh), f("kw", s.kw), f("stride_d", s.stride_d), f("stride_h", s.stride_h);
    f("stride_w", s.stride_w), f("pad_d", s.pad_d), f("pad_h", s.pad_h), f("pad_w", s.pad_w);
    f("dilation_d", s.dilation_d), f("dilation_h", s.dilation_h), f("dilation_w", s.dilation_w);
    f("groups", s.groups), f("dtype", s.dtype), f("compute", s.compute), f("layout", s.layout);
    f("direction", s.direction), f("epilogue", s.epilogue);
  }
  std::int64_t out_d() const { return out(d, kd, stride_d, pad_d, dilation_d); }
  std::int64_t out_h() const { return out(h, kh, stride_h, pad_h, dilation_h); }
  std::int64_t out_w() const { return out(w, kw, stride_w, pad_w, dilation_w); }

 private:
  static std::int64_t out(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                          std::int64_t pad, std::int64_t dilation) {
    std::int64_t span = size + 2 * pad - dilation * (kernel - 1) - 1;
    return span < 0 || stride <= 0 ? 0 : span / stride + 1;
  }
};

struct Attention {
  std::int64_t batch{}, heads{}, kv_heads{}, seq_q{}, seq_k{}, head_dim{}, head_dim_v{};
  // Engines decode beside prompts: sequences of a few tokens in the same launch. 0: none.
  std::int64_t short_batch{}, short_q{}, short_k{};
  DType dtype{DType::f16};
  bool causal{}, dropout{}, varlen{};
  std::int64_t window{};  // keys that a query can see (sliding window); 0: no window
  Direction direction{Direction::forward};
  AttentionKernel kernel{AttentionKernel::flash2};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("batch", s.batch), f("heads", s.heads), f("kv_heads", s.kv_heads), f("seq_q", s.seq_q);
    f("seq_k", s.seq_k), f("head_dim", s.head_dim), f("head_dim_v", s.head_dim_v);
    f("dtype", s.dtype), f("causal", s.causal), f("dropout", s.dropout), f("varlen", s.varlen);
    f("window", s.window), f("direction", s.direction), f("kernel", s.kernel);
    f("short_batch", s.short_batch), f("short_q", s.short_q), f("short_k", s.short_k);
  }
  // The two kinds of sequences by themselves.
  Attention prompts() const {
    Attention a = *this;
    a.short_batch = a.short_q = a.short_k = 0;
    return a;
  }
  Attention tokens() const {
    Attention a = prompts();
    a.batch = short_batch, a.seq_q = short_q, a.seq_k = short_k;
    return a;
  }
};

// rows normalized over cols; batch norm: rows = channels, cols = elements per channel.
struct Normalization {
  NormKind kind{NormKind::layer};
  std::int64_t rows{}, cols{};
  DType dtype{DType::f32};
  Direction direction{Direction::forward};
  bool channels_last{}, fused_add{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("kind", s.kind), f("rows", s.rows), f("cols", s.cols), f("dtype", s.dtype);
    f("direction", s.direction), f("channels_last", s.channels_last), f("fused_add", s.fused_add);
  }
};

struct Softmax {
  std::int64_t rows{}, cols{};
  DType in{DType::f32}, out{DType::f32};
  Direction direction{Direction::forward};
  bool log{}, masked{};
  std::int32_t reads{1};  // of the input, by a kernel that keeps no row
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("rows", s.rows), f("cols", s.cols), f("in", s.in), f("out", s.out);
    f("direction", s.direction), f("log", s.log), f("masked", s.masked), f("reads", s.reads);
  }
};

struct CrossEntropy {
  std::int64_t rows{}, cols{};
  DType dtype{DType::f32};
  Direction direction{Direction::forward};
  bool fused{};  // includes the log-softmax (Liger, Apex, Megatron); else only selects the target
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("rows", s.rows), f("cols", s.cols), f("dtype", s.dtype), f("direction", s.direction);
    f("fused", s.fused);
  }
};

// Each output element is computed from the inputs at the same index.
struct Pointwise {
  std::int64_t elements{};
  std::int64_t bytes_read{}, bytes_written{};
  std::int32_t inputs{1}, outputs{1};
  DType dtype{DType::f32};
  std::int32_t flops_per_element{1};
  std::int32_t vector{4};  // elements a thread moves in one access; 1: unrolled or strided
  bool strided{};          // index arithmetic per element (broadcast, transposed)
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("elements", s.elements), f("bytes_read", s.bytes_read), f("bytes_written", s.bytes_written);
    f("inputs", s.inputs), f("outputs", s.outputs), f("dtype", s.dtype);
    f("flops_per_element", s.flops_per_element), f("vector", s.vector), f("strided", s.strided);
  }
};

struct Reduction {
  std::int64_t inputs{}, outputs{};  // elements in and out
  DType in{DType::f32}, out{DType::f32};
  ReduceKind kind{ReduceKind::sum};
  bool inner{true};  // reduces the contiguous dimension
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("inputs", s.inputs), f("outputs", s.outputs), f("in", s.in), f("out", s.out);
    f("kind", s.kind), f("inner", s.inner);
  }
};

// Reads rows of `cols` elements at given indices (embedding forward, index_select, gather, index).
struct Gather {
  std::int64_t rows{}, cols{}, table_rows{};
  DType dtype{DType::f32}, index{DType::i64};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("rows", s.rows), f("cols", s.cols), f("table_rows", s.table_rows), f("dtype", s.dtype);
    f("index", s.index);
  }
};

// Adds or stores rows at given indices (embedding backward, index_put, scatter_add).
struct Scatter {
  std::int64_t rows{}, cols{}, table_rows{};
  DType dtype{DType::f32}, index{DType::i64};
  bool atomic{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("rows", s.rows), f("cols", s.cols), f("table_rows", s.table_rows), f("dtype", s.dtype);
    f("index", s.index), f("atomic", s.atomic);
  }
};

struct Sort {
  std::int64_t segments{1}, elements{};  // elements per segment
  std::int32_t key_bytes{4}, value_bytes{};
  std::int64_t top{};  // > 0: only the first `top` elements of each segment (top-k)
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("segments", s.segments), f("elements", s.elements), f("key_bytes", s.key_bytes);
    f("value_bytes", s.value_bytes), f("top", s.top);
  }
};

struct Scan {
  std::int64_t elements{};
  std::int64_t bytes_read{}, bytes_written{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("elements", s.elements), f("bytes_read", s.bytes_read), f("bytes_written", s.bytes_written);
  }
};

struct Random {
  std::int64_t elements{};
  DType dtype{DType::f32};
  bool dropout{};  // reads the input, writes output and mask
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("elements", s.elements), f("dtype", s.dtype), f("dropout", s.dropout);
  }
};

// Pooling and resampling: each output element is computed from `window` inputs.
struct Pool {
  std::int64_t inputs{}, outputs{};
  std::int32_t window{1};
  DType dtype{DType::f32};
  Direction direction{Direction::forward};
  bool channels_last{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("inputs", s.inputs), f("outputs", s.outputs), f("window", s.window), f("dtype", s.dtype);
    f("direction", s.direction), f("channels_last", s.channels_last);
  }
};

struct OptimizerStep {
  OptimizerKind kind{OptimizerKind::adam};
  std::int64_t elements{}, tensors{1};
  std::int64_t bytes_read{}, bytes_written{};
  DType dtype{DType::f32};
  bool fused{};  // one kernel does the whole update; else this is one of several foreach passes
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("kind", s.kind), f("elements", s.elements), f("tensors", s.tensors);
    f("bytes_read", s.bytes_read), f("bytes_written", s.bytes_written), f("dtype", s.dtype);
    f("fused", s.fused);
  }
};

struct Copy {
  std::int64_t bytes{};
  CopyDirection direction{CopyDirection::device};
  bool pinned{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("bytes", s.bytes), f("direction", s.direction), f("pinned", s.pinned);
  }
};

struct Fill {
  std::int64_t bytes{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("bytes", s.bytes);
  }
};

// `bytes` is what nccl-tests calls the size: the larger of a rank's send and receive buffer
// (all_gather: all ranks' data; reduce_scatter: the whole input; all_to_all: a rank's whole send).
struct Collective {
  CollectiveKind kind{CollectiveKind::all_reduce};
  std::int64_t bytes{};
  DType dtype{DType::f32};
  ReduceOp reduce{ReduceOp::sum};
  std::int32_t root{-1};
  CollectiveLibrary library{CollectiveLibrary::nccl};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("kind", s.kind), f("bytes", s.bytes), f("dtype", s.dtype), f("reduce", s.reduce);
    f("root", s.root), f("library", s.library);
  }
};

struct PointToPoint {
  bool send{true};
  std::int64_t bytes{};
  std::int32_t peer{};  // rank within the communicator
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("send", s.send), f("bytes", s.bytes), f("peer", s.peer);
  }
};

struct Rnn {
  std::int64_t seq{}, batch{}, input{}, hidden{};
  std::int32_t layers{1}, gates{4}, directions{1};
  DType dtype{DType::f32};
  Direction direction{Direction::forward};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("seq", s.seq), f("batch", s.batch), f("input", s.input), f("hidden", s.hidden);
    f("layers", s.layers), f("gates", s.gates), f("directions", s.directions), f("dtype", s.dtype);
    f("direction", s.direction);
  }
};

struct Fft {
  std::int64_t n{}, batch{1};
  std::int32_t rank{1};
  DType dtype{DType::c64};
  bool real{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("n", s.n), f("batch", s.batch), f("rank", s.rank), f("dtype", s.dtype), f("real", s.real);
  }
};

// Dense factorizations and triangular solves; the routine's name is in Op::name.
struct Solver {
  std::int64_t m{}, n{}, batch{1};
  DType dtype{DType::f32};
  double flop_factor{1};  // FLOPs = flop_factor · m · n · min(m, n) · batch
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("m", s.m), f("n", s.n), f("batch", s.batch), f("dtype", s.dtype);
    f("flop_factor", s.flop_factor);
  }
};

struct Sparse {
  std::int64_t rows{}, cols{}, nonzeros{}, n{1};  // (rows×cols sparse) · (cols×n dense)
  DType dtype{DType::f32};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("rows", s.rows), f("cols", s.cols), f("nonzeros", s.nonzeros), f("n", s.n);
    f("dtype", s.dtype);
  }
};

// How the iteration counts of a kernel's loops were determined.
enum class Loops : std::uint8_t {
  counted,  // computed from sizes and known values
  assumed,  // depend on unknown values: half of the kernel's own bound, as under a causal mask
  unknown   // depend on unknown values and have no bound: one iteration each
};

// Work derived from the code of the kernel (PTX) and its launch arguments.
struct TritonKernel {
  std::int64_t bytes_read{}, bytes_written{};
  std::int64_t flops{}, tensor_flops{};  // plain and tensor-core
  DType dtype{DType::f32};               // of the tensor-core part, else of the data
  std::int32_t num_warps{4}, num_stages{1};
  bool exact{};  // sizes are the bounds that the kernel checks; else those of its grid and block
  Loops loops{Loops::counted};
  // What does not fit into registers: bytes moved to local memory and back in all, and what a
  // thread keeps there.
  std::int64_t spilled{};
  std::int32_t stack{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("bytes_read", s.bytes_read), f("bytes_written", s.bytes_written), f("flops", s.flops);
    f("tensor_flops", s.tensor_flops), f("dtype", s.dtype), f("num_warps", s.num_warps);
    f("num_stages", s.num_stages), f("exact", s.exact), f("loops", s.loops);
    f("spilled", s.spilled), f("stack", s.stack);
  }
};

// An unknown kernel. Only its launch is known.
struct OtherKernel {
  std::int32_t pointers{};  // number of pointer arguments
  // Estimated from the allocations that the pointers point into and the number of threads; 0: not
  // known.
  std::int64_t bytes_touched{};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("pointers", s.pointers), f("bytes_touched", s.bytes_touched);
  }
};

// The order is part of the recording's format: append only.
using Work =
    std::variant<OtherKernel, Gemm, Convolution, Attention, Normalization, Softmax, CrossEntropy,
                 Pointwise, Reduction, Gather, Scatter, Sort, Scan, Random, Pool, OptimizerStep,
                 Copy, Fill, Collective, PointToPoint, Rnn, Fft, Solver, Sparse, TritonKernel>;

struct Geometry {
  std::array<std::uint32_t, 3> grid{}, block{};  // zero for library calls
  std::uint32_t shared_bytes{};                  // static + dynamic
  std::uint16_t registers{};
  std::uint64_t threads() const {
    return std::uint64_t{grid[0]} * grid[1] * grid[2] * block[0] * block[1] * block[2];
  }
  std::uint64_t blocks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
};

struct Op {
  Work work;
  std::string name;  // demangled kernel name or library function
  Geometry geometry;
};

// "gemm", "convolution", … as in `maya estimate` and in reports.
std::string_view kind_name(const Work& work);
std::string_view kind_name(std::size_t index);
// A default-constructed Work of that kind; nullopt if there is none.
std::optional<Work> work_of_kind(std::string_view name);

// Entries of the score matrix that are computed for one head: about half of them under a causal
// mask, a band with a sliding window.
double attention_pairs(const Attention& work);
// A multiplication and an addition count as two FLOPs.
double flops(const Work& work);
// Traffic with device memory if each operand is read and written once.
double bytes_read(const Work& work);
double bytes_written(const Work& work);
inline double bytes_moved(const Work& work) { return bytes_read(work) + bytes_written(work); }
// The type that decides the arithmetic rate; DType::f32 if the work has none.
DType compute_type(const Work& work);

// Enum fields by name, for CSV, JSON and the command line.
template <class E>
std::string_view enum_name(E value);
template <class E>
std::optional<E> parse_enum(std::string_view name);

}  // namespace maya
