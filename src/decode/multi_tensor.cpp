// multi_tensor_apply kernels: foreach passes and fused optimizers over lists of tensors, of ATen,
// Apex and Transformer Engine. The launch carries a table by value:
//   { void* addresses[depth][T]; int64|int sizes[T]; [scalars[T]]; [void* steps[T]];
//     u8|u16 block_to_tensor[B]; int block_to_chunk[B]; [int start_tensor] }
// T and B changed with CUDA 13 (32 KB of arguments); the table's size says which it is.
#include <algorithm>
#include <utility>

#include "decode/functor.h"
#include "decode/rule.h"

namespace maya::decode {
namespace {

struct Table {
  std::size_t sizes{}, block_to_tensor{}, block_to_chunk{}, first_tensor{};
  int tensors{}, blocks{}, size_width{8}, index_width{1};
  bool valid{};
};

Table fit(std::size_t total, int depth, std::size_t scalar_bytes, bool steps) {
  static constexpr int small[2][6] = {{110, 64, 48, 36, 30, 24}, {96, 64, 48, 36, 30, 24}};
  static constexpr int large[2][6] = {{770, 448, 336, 252, 210, 180},
                                      {672, 448, 336, 252, 210, 180}};
  static constexpr int small_complex[2] = {72, 60}, large_complex[2] = {504, 420};
  if (depth < 1 || depth > 6) return {};
  for (int wide = 0; wide < 2; ++wide) {
    std::vector<int> counts;
    bool list = scalar_bytes > 0;
    if (scalar_bytes == 16 && depth <= 2)
      counts.push_back((wide ? large_complex : small_complex)[depth - 1]);
    counts.push_back((wide ? large : small)[list][depth - 1]);
    counts.push_back((wide ? large : small)[!list][depth - 1]);
    int blocks = wide ? 2240 : 320, index = wide ? 2 : 1;
    for (int tensors : counts)
      for (int width : {8, 4})
        for (int start : {0, 4}) {
          auto align = [](std::size_t v, std::size_t a) { return (v + a - 1) / a * a; };
          Table t;
          std::size_t at = 8u * depth * tensors;
          t.sizes = at;
          at += static_cast<std::size_t>(width) * tensors;
          if (list) at = align(at, std::min<std::size_t>(scalar_bytes, 8)) + scalar_bytes * tensors;
          if (steps) at = align(at, 8) + 8u * tensors;
          t.block_to_tensor = at;
          at = align(at + static_cast<std::size_t>(index) * blocks, 4);
          t.block_to_chunk = at;
          t.first_tensor = at + 4u * blocks;
          at = align(at + 4u * blocks + start, scalar_bytes == 16 ? 16 : 8);
          if (at != total) continue;
          t.tensors = tensors;
          t.blocks = blocks;
          t.size_width = width;
          t.index_width = index;
          t.valid = true;
          return t;
        }
  }
  return {};
}

struct Pass {
  OptimizerKind kind{OptimizerKind::other};
  DType dtype{DType::f32};
  DType source{DType::f32};         // of a copy: what is read
  int read_bytes{}, write_bytes{};  // per element
  bool fused{}, norm{}, copy{};
  int written{-1};  // the one list written; -1: the functor does not tell
};

int bytes_of(const std::string& type, int otherwise = 4) {
  int n = size_of(type);
  return n ? n : otherwise;
}

// Bytes per element by functor.
Pass pass_of(std::string_view functor, int depth) {
  Pass p;
  std::string_view name = functor.substr(0, functor.find('<'));
  std::size_t open = functor.find('<');
  std::vector<std::string> t;
  if (open != std::string_view::npos) {
    std::string_view inner = functor.substr(open + 1);
    if (ends_with(inner, ">")) inner.remove_suffix(1);
    t = split_arguments(inner);
  }
  std::string type = t.empty() ? "float" : t[0];
  p.dtype = dtype_of(type) == DType::unknown ? DType::f32 : dtype_of(type);
  int size = bytes_of(type);
  bool adamw = contains(functor, "ADAM_MODE)1") || contains(functor, "AdamW");
  // Leading element types of functors that mix them: one per list.
  std::vector<int> types;
  for (const std::string& s : t) {
    if (dtype_of(s) == DType::unknown || s == "int" || s == "long" || s == "bool") break;
    types.push_back(size_of(s));
  }

  if (contains(name, "FusedAdamMathFunctorMP") && types.size() >= 6) {
    p.kind = adamw ? OptimizerKind::adamw : OptimizerKind::adam;
    p.fused = true;
    p.dtype = dtype_of(t[1]);
    int param = types[1], grad = types[2], m = types[3], v = types[4],
        max = depth == 5 ? types[5] : 0;
    p.read_bytes = param + grad + m + v + max;
    p.write_bytes = param + m + v + max;
  } else if (contains(name, "FusedAdam") || contains(name, "FusedAdagrad")) {
    p.kind = contains(name, "Adagrad") ? OptimizerKind::adagrad
             : adamw                   ? OptimizerKind::adamw
                                       : OptimizerKind::adam;
    p.fused = true;
    p.read_bytes = depth * size;
    p.write_bytes = (depth - 1) * size;
  } else if (contains(name, "FusedSgd") || contains(name, "SGDFunctor")) {
    p.kind = OptimizerKind::sgd;
    p.fused = true;
    if (types.empty() && t.size() >= 3) {  // Apex: SGDFunctor<N, T_grad, T_weight>
      int grad = bytes_of(t[1]), weight = bytes_of(t[2]);
      p.dtype = dtype_of(t[2]);
      p.read_bytes = grad + 2 * weight;
      p.write_bytes = 2 * weight + (depth > 3 ? 2 : 0);
    } else {
      p.read_bytes = depth * size;
      p.write_bytes = (depth - 1) * size;
    }
  } else if (contains(name, "LAMBStage2")) {
    p.kind = OptimizerKind::lamb;
    p.fused = true;
    p.read_bytes = 2 * size;
    p.write_bytes = size;
  } else if (contains(name, "LAMBStage1")) {
    p.kind = OptimizerKind::lamb;
    p.fused = true;
    p.read_bytes = 4 * size;
    p.write_bytes = 3 * size;
  } else if (contains(name, "Adagrad")) {
    p.kind = OptimizerKind::adagrad;
    p.fused = true;
    p.read_bytes = 3 * size;
    p.write_bytes = 2 * size;
  } else if (contains(name, "NovoGrad") || contains(name, "Adam")) {
    // Apex and Transformer Engine: lists g, p, m, v [, master p]; state in float.
    p.kind = adamw ? OptimizerKind::adamw : OptimizerKind::adam;
    p.fused = true;
    int grad = types.size() > 1 ? types[1] : size, param = size;
    bool master = depth >= 5;
    p.read_bytes = grad + 8 + (master ? 4 : param);
    p.write_bytes = param + 8 + (master ? 4 : 0);
  } else if (contains(name, "Norm") || contains(name, "LpMax")) {
    p.norm = true;
    p.read_bytes = size;
  } else if (contains(name, "ZeroFunctor")) {
    p.write_bytes = size;
  } else if (contains(name, "CopyFunctor")) {
    p.copy = true;
    p.source = t.size() > 1 ? dtype_of(t[1]) : p.dtype;
    p.read_bytes = t.size() > 1 ? bytes_of(t[1], size) : size;
    p.write_bytes = size;
  } else if (contains(name, "ScaleFunctor") || contains(name, "AxpbyFunctor")) {
    int in = size, out = types.size() > 1 ? types.back() : size;
    p.read_bytes = contains(name, "Axpby") ? 2 * in : in;
    p.write_bytes = out;
  } else {
    // ATen's foreach functors end in <…, depth, lists read, list written>.
    long reads = depth > 1 ? depth - 1 : 1;
    if (t.size() >= 4) {
      Name wrapper;
      wrapper.templates = t;
      reads = template_number(wrapper, t.size() - 2, reads);
      p.written = static_cast<int>(template_number(wrapper, t.size() - 1, -1));
    }
    p.read_bytes = static_cast<int>(std::clamp<long>(reads, 1, depth)) * size;
    p.write_bytes = size;
  }
  return p;
}

// What a functor does to the elements of its lists stands beside it: Copy<to, from> changes nothing
// but their type.
void see_copy(std::string_view operation, Pass& pass) {
  const std::size_t open = operation.find("Copy<");
  if (open == std::string_view::npos || !ends_with(operation, ">")) return;
  const auto types = split_arguments(operation.substr(open + 5, operation.size() - open - 6));
  if (types.size() != 2) return;
  pass.copy = true;
  pass.written = 1;
  pass.dtype = dtype_of(types[0]);
  pass.source = dtype_of(types[1]);
  pass.write_bytes = bytes_of(types[0]);
  pass.read_bytes = bytes_of(types[1]);
}

class MultiTensor : public Decoder {
 public:
  int table{0};  // parameter that holds the table
  int chunk_parameter{-1};
  int depth{1};
  int norms{-1};  // parameter that points at a norm's results, the chunks of a tensor behind it
  Table layout;
  Pass pass;

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments arguments(launch);
    if (!layout.valid || capacity < 24) return 0;
    int blocks = static_cast<int>(std::min<std::uint64_t>(arguments.grid(0), layout.blocks));
    if (blocks < 1) return 0;
    int last = std::min(tensor_of(arguments, blocks - 1), layout.tensors - 1);
    std::uint64_t h = 0x1234567;
    for (int i = 0; i <= last; ++i) h = mix(h, static_cast<std::uint64_t>(size_at(arguments, i)));
    std::int32_t first_chunk = chunk_of(arguments, 0), last_chunk = chunk_of(arguments, blocks - 1);
    std::memcpy(out, &h, 8);
    std::memcpy(out + 8, &first_chunk, 4);
    std::memcpy(out + 12, &last_chunk, 4);
    return 16;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments arguments(launch);
    Decoded out;
    out.op.geometry = launch.geometry;
    std::int64_t chunk = chunk_parameter >= 0 ? arguments.integer(chunk_parameter) : 65536;
    if (chunk <= 0) chunk = 65536;
    std::int64_t elements = 0, tensors = 0;
    std::vector<Semantics> copies;
    int previous = -1;
    if (layout.valid && arguments.raw(table, 0, 1)) {
      int blocks = static_cast<int>(std::min<std::uint64_t>(arguments.grid(0), layout.blocks));
      for (int b = 0; b < blocks; ++b) {
        int t = tensor_of(arguments, b);
        if (t >= layout.tensors) break;
        std::int64_t rest = size_at(arguments, t) - chunk_of(arguments, b) * chunk;
        if (rest > 0) elements += std::min(rest, chunk);
        if (t == previous) continue;
        ++tensors, previous = t;
        if (pass.copy && depth == 2 && chunk_of(arguments, b) == 0) {
          if (out.semantics.kind != Semantics::Kind::unknown)
            copies.push_back(std::exchange(out.semantics, {}));
          out.semantics = copied(arguments, t);
        }
        // Which lists an optimizer writes is its own business: all count as written. What else it
        // points at (flags, scales) it reads, but for a norm, which writes its results there.
        for (int list = 0; list < depth && !pass.norm; ++list) {
          if (pass.written >= 0 && pass.written < depth && list != pass.written) continue;
          write(
              out,
              arguments.pointer(table, 8u * (static_cast<std::size_t>(list) * layout.tensors + t)),
              size_at(arguments, t) * std::max(pass.fused ? 4 : 1, bits(pass.dtype) / 8));
        }
      }
    } else {
      elements = static_cast<std::int64_t>(arguments.grid(0)) * chunk;  // upper bound
      tensors = 1;
    }
    out.semantics.parts = std::move(copies);
    if (pass.norm && norms >= 0 && previous >= 0) {
      // results[tensor of the whole list][chunk]
      const std::int64_t tensors_before = arguments.at<std::int32_t>(table, layout.first_tensor);
      write(out, arguments.pointer(norms),
            4 * (tensors_before + previous + 1) *
                std::max<std::int64_t>(1, arguments.integer(norms + 1)));
    }
    if (pass.norm) {
      Reduction work;
      work.inputs = elements;
      work.outputs = std::max<std::int64_t>(1, static_cast<std::int64_t>(arguments.grid(0)));
      work.in = pass.dtype;
      work.out = DType::f32;
      work.kind = ReduceKind::norm;
      out.op.work = work;
    } else if (pass.copy) {
      Pointwise work;
      work.elements = elements;
      work.bytes_read = elements * pass.read_bytes;
      work.bytes_written = elements * pass.write_bytes;
      work.dtype = pass.dtype;
      work.flops_per_element = 0;
      out.op.work = work;
    } else {
      OptimizerStep work;
      work.kind = pass.kind;
      work.elements = elements;
      work.tensors = tensors;
      work.bytes_read = elements * pass.read_bytes;
      work.bytes_written = elements * pass.write_bytes;
      work.dtype = pass.dtype;
      work.fused = pass.fused;
      out.op.work = work;
    }
    return out;
  }

 private:
  // One tensor of the first list goes to its place in the second.
  Semantics copied(const Arguments& a, int tensor) const {
    Semantics s;
    s.kind = Semantics::Kind::copy_cast;
    auto operand = [&](int list, DType type) {
      Semantics::Operand o;
      o.dtype = type;
      o.address = a.pointer(table, 8u * (static_cast<std::size_t>(list) * layout.tensors + tensor));
      o.rank = 1, o.size[0] = size_at(a, tensor), o.stride[0] = bits(type) / 8;
      return o;
    };
    s.inputs = {operand(0, pass.source)};
    s.outputs = {operand(1, pass.dtype)};
    return s;
  }

  int tensor_of(const Arguments& a, int block) const {
    return layout.index_width == 2 ? a.at<std::uint16_t>(table, layout.block_to_tensor + 2 * block)
                                   : a.at<std::uint8_t>(table, layout.block_to_tensor + block);
  }
  std::int32_t chunk_of(const Arguments& a, int block) const {
    return a.at<std::int32_t>(table, layout.block_to_chunk + 4 * block);
  }
  std::int64_t size_at(const Arguments& a, int tensor) const {
    return layout.size_width == 8 ? a.at<std::int64_t>(table, layout.sizes + 8 * tensor)
                                  : a.at<std::int32_t>(table, layout.sizes + 4 * tensor);
  }
};

}  // namespace

Made prepare_multi_tensor(const Kernel& kernel, const Name& name) {
  if (name.leaf != "multi_tensor_apply_kernel" || name.templates.size() < 2) {
    // The second kernel of a foreach norm: a handful of partial sums per tensor.
    if (name.leaf == "lpnorm_cleanup" || name.leaf == "lpmax_cleanup" || name.leaf == "cleanup" ||
        name.leaf == "cleanup_v2") {
      DType t = template_dtype(name, 0, DType::f32);
      int last = static_cast<int>(name.parameters.size()) - 1;
      return make(whole(kernel, {last}), [t, last](const Arguments& a, Decoded& out) {
        Reduction work;
        work.outputs = static_cast<std::int64_t>(a.grid(0));
        std::int64_t chunks = last >= 0 && a.size(last) == 4 ? a.integer(last) : 320;
        work.inputs = work.outputs * std::clamp<std::int64_t>(chunks, 1, 1 << 20);
        work.in = DType::f32;
        work.out = t;
        work.kind = ReduceKind::norm;
        out.op.work = work;
      });
    }
    return nullptr;
  }
  auto d = std::make_unique<MultiTensor>();
  const std::string& meta = name.templates[0];
  std::size_t open = meta.find('<');
  std::vector<std::string> inner;
  if (open != std::string::npos) {
    std::string_view text = std::string_view(meta).substr(open + 1);
    if (ends_with(text, ">")) text.remove_suffix(1);
    inner = split_arguments(text);
  }
  bool list = contains(meta, "ScalarList"), steps = contains(meta, "FusedOptimizer");
  if (!inner.empty()) {
    // <depth>, <scalar, depth>, Apex <depth>, Transformer Engine <depth, FP8?>
    d->depth = std::max(1, std::atoi((list ? inner.back() : inner.front()).c_str()));
  }
  std::size_t scalar_bytes = list && inner.size() > 1 ? std::max(1, size_of(inner[0])) : 0;
  d->pass = pass_of(name.templates[1], d->depth);
  for (std::size_t i = 2; i < name.templates.size(); ++i) see_copy(name.templates[i], d->pass);
  for (std::size_t i = 0; i < name.parameters.size(); ++i)
    if (contains(name.parameters[i], "Metadata")) d->table = static_cast<int>(i);
  if (d->table > 0 && is_integer_scalar(name.parameters[0])) d->chunk_parameter = 0;
  if (static_cast<std::size_t>(d->table) < kernel.parameter_sizes.size())
    d->layout = fit(kernel.parameter_sizes[d->table], d->depth, scalar_bytes, steps);
  const bool numbered =
      d->layout.valid && d->layout.first_tensor + 4 <= kernel.parameter_sizes[d->table];
  for (std::size_t i = 0; d->pass.norm && numbered && i + 1 < name.parameters.size(); ++i)
    if (is_pointer(name.parameters[i]) && is_integer_scalar(name.parameters[i + 1]))
      d->norms = static_cast<int>(i);
  return d;
}

}  // namespace maya::decode
