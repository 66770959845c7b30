#include "decode/moves.h"

#include <algorithm>

namespace maya::decode {
namespace {

Semantics::Operand column(const Offsets& offsets, int argument, std::uint64_t address, DType type) {
  Semantics::Operand o;
  o.dtype = type;
  o.address = address;
  o.rank = std::min(offsets.dims, 8);
  for (int d = 0; d < o.rank; ++d) {
    o.size[d] = offsets.size[d];
    o.stride[d] = static_cast<std::int32_t>(offsets.stride[d][argument]);  // negative when flipped
  }
  return o;
}

std::string combination(std::string_view text) {
  if (contains(text, "ReduceAdd")) return "add";
  if (contains(text, "ReduceMul")) return "mul";
  if (contains(text, "ReduceMax")) return "max";
  if (contains(text, "ReduceMin")) return "min";
  if (contains(text, "TensorAssign")) return "assign";
  return "unknown";
}

}  // namespace

DType type_of_bytes(std::int64_t bytes) {
  switch (bytes) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i16;
    case 4:
      return DType::i32;
    case 8:
      return DType::i64;
    case 16:
      return DType::c128;
    default:
      return DType::unknown;
  }
}

DType type_of_size(int bytes) {
  return bytes == 2    ? DType::f16
         : bytes == 1  ? DType::u8
         : bytes == 8  ? DType::i64
         : bytes == 16 ? DType::c128
                       : DType::f32;
}

Semantics::Operand line(std::uint64_t address, DType type, std::int64_t elements) {
  Semantics::Operand o;
  o.dtype = type;
  o.address = address;
  o.rank = 1;
  o.size[0] = elements;
  o.stride[0] = std::max(1, bits(type) / 8);
  return o;
}

Semantics strided_move(const Arguments& a, const Offsets& offsets, std::string_view lambda,
                       DType dtype, int bytes) {
  Semantics s;
  using Kind = Semantics::Kind;
  if (offsets.dims > 8 || type_of_bytes(bytes) == DType::unknown) return s;
  DType raw = type_of_bytes(bytes);
  std::size_t at = (Offsets::bytes(offsets.arguments) + 7) / 8 * 8;
  auto word = [&](std::size_t k) { return a.at<std::int64_t>(1, at + 8 * k); };
  auto address = [&](std::size_t k) { return a.pointer(1, at + 8 * k); };
  s.function = "assign";
  if (contains(lambda, "flip_kernel")) {  // { out, in }
    s.kind = Kind::gather;
    s.outputs = {column(offsets, 0, address(0), raw)};
    s.inputs = {column(offsets, 1, address(1), raw)};
  } else if (contains(lambda, "gpu_index_kernel")) {
    // { out, in, int count, indices[25], sizes[25], strides[25] }
    bool put = contains(lambda, "index_put");
    auto count = static_cast<std::int32_t>(word(2));
    if (count < 1 || count > 8 || a.size(1) < at + 8 * 78) return s;
    s.kind = put ? Kind::scatter : Kind::gather;
    s.outputs = {column(offsets, 0, address(0), raw)};
    s.inputs = {column(offsets, 1, address(1), raw)};
    for (int i = 0; i < count; ++i) {
      s.inputs.push_back(column(offsets, 2, address(3 + i), DType::i64));
      s.steps.push_back({word(28 + i), word(53 + i)});
    }
  } else if (contains(lambda, "_cuda_scatter_gather_internal_kernel") ||
             contains(lambda, "_cuda_scatter_fill_internal_kernel")) {
    // { index, index size, f, self, index stride, numel, source pointer or value }
    bool fill = contains(lambda, "scatter_fill");
    bool put = fill || contains(lambda, "internal_kernel<true");
    DType index = contains(lambda, ", int>::operator()") ? DType::i32 : DType::i64;
    s.function = combination(lambda);
    DType type = s.function == "assign" ? raw : dtype;
    s.kind = put ? Kind::scatter : Kind::gather;
    s.outputs = {column(offsets, 0, address(3), type)};
    if (fill) {
      s.from_constant = true;
      if (const std::byte* p = a.raw(1, at + 48, static_cast<std::size_t>(bytes)))
        std::memcpy(s.constant.data(), p, static_cast<std::size_t>(bytes));
      else
        s.kind = Kind::unknown;
    } else {
      s.inputs = {column(offsets, 1, address(6), type)};
    }
    s.inputs.push_back(column(offsets, fill ? 1 : 2, address(0), index));
    s.steps = {{word(1), word(4) * bytes}};
  } else if (contains(lambda, "index_copy_kernel")) {
    // { self, index, source, size, stride }
    s.kind = Kind::scatter;
    s.outputs = {column(offsets, 0, address(0), raw)};
    s.inputs = {column(offsets, 2, address(2), raw), column(offsets, 1, address(1), DType::i64)};
    s.steps = {{word(3), word(4) * bytes}};
  } else if (contains(lambda, "index_fill_kernel")) {
    // { self, index, size, stride, value }
    s.kind = Kind::scatter;
    s.from_constant = true;
    if (const std::byte* p = a.raw(1, at + 32, static_cast<std::size_t>(bytes)))
      std::memcpy(s.constant.data(), p, static_cast<std::size_t>(bytes));
    s.outputs = {column(offsets, 0, address(0), raw)};
    s.inputs = {column(offsets, 1, address(1), DType::i64)};
    s.steps = {{word(2), word(3) * bytes}};
  }
  return s;
}

Semantics slice_move(const Arguments& a, const Signature& signature, bool scatter,
                     std::string function) {
  Semantics s;
  Tensor dst = signature.tensor(a, 0), src = signature.tensor(a, 1), at = signature.tensor(a, 2);
  std::int64_t dst_dim = a.integer(3), src_dim = a.integer(4);
  if (dst_dim < 0 || dst_dim >= dst.rank || src_dim < 0 || src_dim >= src.rank || dst.rank > 7 ||
      src.rank > 7 || at.elements <= 0 || dst.elements != src.elements)
    return s;
  DType raw = function == "assign" ? type_of_bytes(dst.element_bytes) : dst.dtype;
  if (raw == DType::unknown) return s;
  // ATen sets the selected dimension of both to 1; the indices run over it.
  Semantics::Operand out = operand(dst), in = operand(src), index = operand(at);
  out.dtype = in.dtype = raw;
  Tensor &picked = scatter ? dst : src, &straight = scatter ? src : dst;
  std::int64_t picked_dim = scatter ? dst_dim : src_dim, straight_dim = scatter ? src_dim : dst_dim;
  auto append = [&](Semantics::Operand& o, std::int64_t stride) {
    o.size[o.rank] = at.elements;
    o.stride[o.rank++] = stride;
  };
  append(scatter ? in : out, straight.stride[straight_dim] * straight.element_bytes);
  append(scatter ? out : in, 0);
  if (index.rank > 7) return s;
  for (int d = index.rank; d > 0; --d)
    index.size[d] = index.size[d - 1], index.stride[d] = index.stride[d - 1];
  index.size[0] = dst.elements, index.stride[0] = 0;
  ++index.rank;
  s.kind = scatter ? Semantics::Kind::scatter : Semantics::Kind::gather;
  s.function = std::move(function);
  s.outputs = {out};
  s.inputs = {in, index};
  // The selected dimension's length comes last (select) or behind the inner size (add).
  std::int64_t length = 0;
  for (std::size_t i = 5; i < a.kernel().parameter_sizes.size() && i < 9; ++i)
    if (a.size(i) == 8 && length == 0) length = a.integer(i);
  s.steps = {{length > 0 ? length : std::int64_t{1} << 40,
              picked.stride[picked_dim] * picked.element_bytes}};
  return s;
}

}  // namespace maya::decode
