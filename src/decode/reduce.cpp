// ATen's reduce_kernel<threads, output_vec, ReduceOp<in, ops, index, out, vt0, vec>>(ReduceOp).
//
// ReduceOp = { ops, ident, ReduceConfig, OffsetCalculator<1>, OffsetCalculator<2>, src, dst[2], …
// }. The sizes of ops and ident vary with the type, so the config is found by its own contents: its
// block and grid must be the launch's.
#include <atomic>

#include "decode/offsets.h"
#include "decode/rule.h"

namespace maya::decode {
namespace {

struct Config {  // ATen/native/cuda/Reduce.cuh, unchanged from 1.6 on
  std::int32_t element_size, inputs, outputs, step_input, step_output, ctas_per_output;
  std::int32_t input_mult[3], output_mult[2];
  std::int32_t block_width, block_height, threads;
  std::uint8_t vectorize, pad[3];
  std::int32_t output_vec;
};
static_assert(sizeof(Config) == 64);

ReduceKind kind_of(std::string_view ops) {
  if (contains(ops, "MeanOps")) return ReduceKind::mean;
  if (contains(ops, "sum_functor") || contains(ops, "nansum")) return ReduceKind::sum;
  if (contains(ops, "ArgMax") || contains(ops, "ArgMin")) return ReduceKind::argmax;
  if (contains(ops, "MinMax") || contains(ops, "MaxOps") || contains(ops, "MaxNan") ||
      contains(ops, "max_values"))
    return ReduceKind::max;
  if (contains(ops, "MinOps") || contains(ops, "MinNan") || contains(ops, "min_values"))
    return ReduceKind::min;
  if (contains(ops, "Norm") || contains(ops, "norm")) return ReduceKind::norm;
  if (contains(ops, "or_kernel") || contains(ops, "and_kernel")) return ReduceKind::any;
  if (contains(ops, "prod_functor") || contains(ops, "ReductionMulOp")) return ReduceKind::product;
  return ReduceKind::other;
}

std::string function_of(std::string_view ops) {
  if (contains(ops, "xor_sum")) return "xor";
  if (contains(ops, "sum_functor")) return "sum";
  if (contains(ops, "prod_functor") || contains(ops, "ReductionMulOp")) return "product";
  if (contains(ops, "or_kernel")) return "any";
  if (contains(ops, "and_kernel")) return "all";
  if (contains(ops, "ArgMaxOps")) return "argmax";
  if (contains(ops, "ArgMinOps")) return "";
  if (contains(ops, "MinMaxOps")) return "minmax";
  if (contains(ops, "MaxOps") || contains(ops, "MaxNan")) return "max";
  if (contains(ops, "MinOps") || contains(ops, "MinNan")) return "min";
  if (contains(ops, "MeanOps")) return "mean";
  return "";
}

class Reduce : public Decoder {
 public:
  DType in{DType::f32}, out_type{DType::f32};
  ReduceKind kind{};
  std::string function;
  bool with_index{};  // max/min with indices: two outputs
  mutable std::atomic<std::int32_t> config_at{-1};

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments arguments(launch);
    std::int32_t at = place(arguments);
    if (at < 0) return 0;
    const std::byte* p =
        arguments.raw(0, at, sizeof(Config) + Offsets::bytes(1) + Offsets::bytes(2));
    if (!p || capacity < 24) return 0;
    std::memcpy(out, p, 12);
    std::uint64_t h = Offsets::hash(p + sizeof(Config), 1);
    h = mix(h, Offsets::hash(p + sizeof(Config) + Offsets::bytes(1), 2));
    std::memcpy(out + 12, &h, 8);
    return 20;
  }

  bool touches_values() const override {
    return is_integer(out_type) || out_type == DType::unknown || with_index;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments arguments(launch);
    Decoded out;
    out.op.geometry = launch.geometry;
    Reduction work;
    work.in = in;
    work.out = out_type;
    work.kind = kind;
    std::int32_t at = place(arguments);
    if (at < 0) {
      // No arguments to read: the grid covers the outputs, so this is a lower bound.
      work.outputs = static_cast<std::int64_t>(launch.geometry.grid[0]);
      work.inputs = static_cast<std::int64_t>(launch.geometry.threads()) * 4;
      out.op.work = work;
      return out;
    }
    Config c{};
    std::memcpy(&c, arguments.raw(0, at, sizeof c), sizeof c);
    work.inputs = std::int64_t{c.inputs} * c.outputs;
    work.outputs = c.outputs;
    const std::byte* calc = arguments.raw(0, at + sizeof c, Offsets::bytes(1) + Offsets::bytes(2));
    Offsets reduced, kept;
    bool shapes = calc && reduced.read(calc, 1, c.inputs) &&
                  kept.read(calc + Offsets::bytes(1), 2, c.outputs);
    int size = std::max(1, bits(in) / 8), out_size = std::max(1, bits(out_type) / 8);
    std::size_t source =
        (static_cast<std::size_t>(at) + sizeof c + Offsets::bytes(1) + Offsets::bytes(2) + 7) / 8 *
        8;
    std::uint64_t src = arguments.pointer(0, source), dst = arguments.pointer(0, source + 8);
    std::uint64_t dst2 = arguments.pointer(0, source + 16);
    if (shapes) {
      work.inner = reduced.dims > 0 && (reduced.stride[0][0] == size);
      if (reduced.dims == 0) work.inner = true;
      std::int64_t span = reduced.span(0, size, true) + kept.span(1, size, true) - size;
      read(out, src, span);
      write(out, dst, kept.span(0, out_size, true));
      if (with_index && arguments.at<std::int32_t>(0, source + 60) > 1)
        write(out, dst2,
              kept.span(0, out_size, true) / out_size * (function == "minmax" ? out_size : 8));
      semantics(out, reduced, kept, src, dst, dst2, arguments.at<std::int32_t>(0, source + 60) > 1);
    }
    out.op.work = work;
    return out;
  }

 private:
  std::int32_t place(const Arguments& arguments) const {
    std::int32_t known = config_at.load(std::memory_order_relaxed);
    if (known >= 0) return known;
    std::size_t total = arguments.size(0);
    if (!arguments.raw(0, 0, total)) return -1;
    std::size_t tail = sizeof(Config) + Offsets::bytes(1) + Offsets::bytes(2) + 56;
    for (std::size_t at = 0; at + tail <= total; at += 4) {
      Config c{};
      std::memcpy(&c, arguments.raw(0, at, sizeof c), sizeof c);
      if (c.element_size < 1 || c.element_size > 32 || c.inputs < 1 || c.outputs < 1) continue;
      if (static_cast<std::uint64_t>(c.block_width) != arguments.block(0) ||
          static_cast<std::uint64_t>(c.block_height) != arguments.block(1) ||
          c.threads != c.block_width * c.block_height ||
          static_cast<std::uint64_t>(c.ctas_per_output) != arguments.grid(1))
        continue;
      Offsets calc;
      if (!calc.read(arguments.raw(0, at + sizeof c, Offsets::bytes(1)), 1, c.inputs)) continue;
      config_at.store(static_cast<std::int32_t>(at), std::memory_order_relaxed);
      return static_cast<std::int32_t>(at);
    }
    return -1;
  }

  void semantics(Decoded& out, const Offsets& reduced, const Offsets& kept, std::uint64_t src,
                 std::uint64_t dst, std::uint64_t dst2, bool two) const {
    int rank = reduced.dims + kept.dims;
    if (function.empty() || rank > 8) return;
    Semantics& s = out.semantics;
    s.kind = Semantics::Kind::reduce;
    s.function = function;
    Semantics::Operand to, from;
    to.dtype = out_type;
    to.address = dst;
    from.dtype = in;
    from.address = src;
    to.rank = from.rank = rank;
    for (int d = 0; d < reduced.dims; ++d) {
      to.size[d] = 1;
      from.size[d] = reduced.size[d];
      from.stride[d] = reduced.stride[d][0];
    }
    for (int d = 0; d < kept.dims; ++d) {
      int at = reduced.dims + d;
      to.size[at] = from.size[at] = kept.size[d];
      to.stride[at] = kept.stride[d][0];
      from.stride[at] = kept.stride[d][1];
    }
    s.inputs = {from};
    s.outputs = {to};
    if (function == "minmax") {
      // Two outputs of the same shape, least and greatest: the greatest is what code looks at
      // (bincount).
      s.function = "max";
      s.outputs[0].address = dst2;
      s.outputs.push_back(to);
    } else if (function == "argmax" || (with_index && function == "max" && two)) {
      // The place of the greatest: the best one of each row.
      if (reduced.dims != 1) {
        s = {};
        return;
      }
      s.kind = Semantics::Kind::topk;
      s.function = "largest";
      s.k = 1;
      Semantics::Operand place = to;
      if (function == "max") {
        place.dtype = DType::i64;
        place.address = dst2;
        // Strides are those of the values; the indices lie alike.
        int size = std::max(1, bits(out_type) / 8);
        for (int d = 0; d < place.rank; ++d) place.stride[d] = place.stride[d] / size * 8;
      }
      s.outputs = {to, place};
    }
  }
};

}  // namespace

Made prepare_reduce(const Kernel&, const Name& name) {
  if (name.leaf != "reduce_kernel" || name.templates.empty()) return nullptr;
  const std::string& op = name.templates.back();
  std::size_t at = op.find("ReduceOp<");
  if (at == std::string::npos) return nullptr;
  std::string_view inner = std::string_view(op).substr(at + 9);
  if (ends_with(inner, ">")) inner.remove_suffix(1);
  std::vector<std::string> t = split_arguments(inner);
  auto d = std::make_unique<Reduce>();
  if (!t.empty()) d->in = dtype_of(t[0]);
  if (t.size() > 3)
    d->out_type = dtype_of(t[3]);
  else
    d->out_type = d->in;
  std::string_view ops = t.size() > 1 ? std::string_view(t[1]) : inner;
  d->kind = kind_of(ops);
  d->function = function_of(ops);
  d->with_index =
      contains(ops, "MaxOps") || contains(ops, "MinOps");  // also MinMaxOps: two outputs
  return d;
}

}  // namespace maya::decode
