// Picking and placing by index: index, index_put, gather, scatter, index_select, index_add, take,
// put.
#include <algorithm>
#include <bit>

#include "decode/moves.h"
#include "decode/table.h"

namespace maya::decode {
namespace {

constexpr Row index_table[] = {
    // <Op, …, T, index>(out, src, index, int count, slice bytes, …)
    {.kernel = "tma_scatter_kernel|vectorized_scatter_kernel",
     .op = "scatter dtype=P0 atomic=1 rows=a3 cols=max(a4/size(P0),1)"},
    // (sorted, indices, grad, grad_weight, numel, stride, stride_before, outer, …)
    {.kernel = "indexing_backward_kernel*",
     .op = "scatter dtype=T0 rows=a4*max(a7,1) cols=max(a5,1)"},
};

int opaque_size(std::string_view text, int otherwise = 4) {
  std::size_t at = text.find("OpaqueType<");
  if (at != std::string_view::npos) {
    int n = std::atoi(std::string(text.substr(at + 11)).c_str());
    if (n > 0 && n <= 64) return n;
  }
  DType t = first_dtype(text);
  return t == DType::unknown ? otherwise : whole_bytes(t);
}

// index_elementwise_kernel and _scatter_gather_elementwise_kernel: (N, lambda), the lambda
// beginning with OffsetCalculator<3> over (out, in, index).
Made strided_index(const Kernel& kernel, const Name& name) {
  const std::string& text = kernel.demangled;
  const std::string lambda = name.templates.size() > 2 ? name.templates[2] : text;
  bool scatter = contains(lambda, "index_put") || contains(lambda, "index_fill") ||
                 contains(lambda, "index_copy") || contains(lambda, "put_kernel") ||
                 contains(lambda, "scatter_fill") ||
                 contains(lambda, "scatter_gather_internal_kernel<true");
  bool flip = contains(lambda, "flip_kernel");
  bool atomic = contains(lambda, "ReduceAdd") || contains(lambda, "accumulate");
  int size = opaque_size(lambda);
  DType dtype = contains(lambda, "OpaqueType<") ? type_of_size(size) : first_dtype(lambda);
  if (dtype == DType::unknown) dtype = type_of_size(size);
  int arguments = flip || contains(lambda, "fill") ? 2 : 3;
  std::vector<KeyPart> parts = whole(kernel, {0});
  if (kernel.parameter_sizes.size() > 1) {
    std::uint16_t n = std::min<std::uint16_t>(kernel.parameter_sizes[1], 100);
    parts.push_back({1, 0, n});  // dims and the first sizes
  }
  return make(
      parts,
      [=](const Arguments& a, Decoded& d) {
        std::int64_t n = a.integer(0);
        Offsets offsets;
        std::int64_t rows = std::max<std::int64_t>(1, n);
        bool shaped = offsets.read(a.raw(1, 0, Offsets::bytes(arguments)), arguments, n);
        if (shaped && !flip) rows = std::max<std::int64_t>(1, offsets.distinct(arguments - 1));
        if (flip) {
          Pointwise work;
          work.elements = n;
          work.bytes_read = work.bytes_written = n * size;
          work.dtype = dtype;
          work.strided = true;
          work.vector = 1;
          work.flops_per_element = 0;
          d.op.work = work;
        } else if (scatter) {
          Scatter work;
          work.rows = rows;
          work.cols = n / rows;
          work.dtype = dtype;
          work.atomic = atomic;
          d.op.work = work;
        } else {
          Gather work;
          work.rows = rows;
          work.cols = n / rows;
          work.dtype = dtype;
          d.op.work = work;
        }
        if (!shaped) return;
        d.semantics = strided_move(a, offsets, lambda, dtype, size);
        if (flip || d.semantics.outputs.empty()) return;
        std::int64_t span = offsets.span(0, size, true);
        if (scatter)
          for (const auto& step : d.semantics.steps)
            span += std::max<std::int64_t>(0, (step.size - 1) * step.stride);
        write(d, d.semantics.outputs[0].address, span);
      },
      is_integer(dtype));
}

}  // namespace

std::span<const Row> index_rows() { return index_table; }

Made prepare_index(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (leaf == "index_elementwise_kernel" || leaf == "_scatter_gather_elementwise_kernel")
    return strided_index(kernel, name);
  if (Made made = prepare_places(kernel, name)) return made;

  auto signature = std::make_shared<Signature>(kernel, name);
  std::vector<KeyPart> key = signature->key(kernel);

  if (leaf == "vectorized_gather_kernel") {
    // <alignment, index>(out, in, index, int count, slice bytes, index range, in stride, out
    // stride, bool)
    DType index = template_dtype(name, 1, DType::i64);
    return make(key, [=](const Arguments& a, Decoded& d) {
      Gather work;
      work.rows = a.integer(3);
      work.cols = a.integer(4);  // bytes
      work.table_rows = a.integer(5);
      work.dtype = DType::u8;
      work.index = index;
      d.op.work = work;
      read(d, a.pointer(2), work.rows * bits(index) / 8);
      write(d, a.pointer(0), (work.rows - 1) * a.integer(7) + work.cols);
      // Rows can be followed by value: the type does not matter to a copy.
      std::int64_t unit = 16;
      while (unit > 1 && work.cols % unit != 0) unit /= 2;
      if (work.rows <= 0 || work.cols <= 0) return;
      d.semantics.kind = Semantics::Kind::gather;
      d.semantics.function = "assign";
      Semantics::Operand out = line(a.pointer(0), type_of_bytes(unit), work.cols / unit);
      Semantics::Operand in = line(a.pointer(1), type_of_bytes(unit), work.cols / unit);
      Semantics::Operand at = line(a.pointer(2), index, work.cols / unit);
      out.rank = in.rank = at.rank = 2;
      out.size[1] = in.size[1] = at.size[1] = work.rows;
      out.stride[1] = a.integer(7);
      at.stride[0] = 0, at.stride[1] = bits(index) / 8;
      d.semantics.outputs = {out};
      d.semantics.inputs = {in, at};
      d.semantics.steps = {{work.table_rows, a.integer(6)}};
    });
  }
  if (leaf == "indexSelectLargeIndex" || leaf == "indexSelectSmallIndex") {
    // (dst, src, indices: TensorInfo, …, source dimension size)
    DType index = template_dtype(name, 1, DType::i64);
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Tensor dst = signature->tensor(a, 0), at = signature->tensor(a, 2);
          Gather work;
          work.rows = std::max<std::int64_t>(1, at.elements);
          work.cols = dst.elements;  // ATen sets the selected dimension to 1
          if (!signature->integers().empty())
            work.table_rows = a.integer(signature->integers().back());
          work.dtype = dst.dtype == DType::unknown ? type_of_size(dst.element_bytes) : dst.dtype;
          work.index = index;
          d.op.work = work;
          read(d, at.address, at.elements * at.element_bytes);
          write(d, dst.address, dst.elements * dst.element_bytes * work.rows);
          d.semantics = slice_move(a, *signature, false, "assign");
        },
        is_integer(template_dtype(name, 0, DType::f32)));
  }
  if (leaf == "indexFuncLargeIndex" || leaf == "indexFuncSmallIndex") {
    DType index = template_dtype(name, 1, DType::i64);
    bool atomic = !name.templates.empty() && contains(name.templates.back(), "ReduceAdd");
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Tensor src = signature->tensor(a, 1), at = signature->tensor(a, 2);
          Scatter work;
          work.rows = std::max<std::int64_t>(1, at.elements);
          work.cols = src.elements;  // likewise
          work.dtype = src.dtype;
          work.index = index;
          work.atomic = atomic;
          d.op.work = work;
          // The last argument is alpha, in the elements' type; only the usual 1 is followed.
          std::size_t last = a.kernel().parameter_sizes.size() - 1;
          bool one = src.dtype == DType::f32 ? a.at<float>(last) == 1
                     : src.dtype == DType::i64
                         ? a.at<std::int64_t>(last) == 1
                         : src.dtype == DType::i32 && a.at<std::int32_t>(last) == 1;
          if (atomic && one) d.semantics = slice_move(a, *signature, true, "add");
        },
        is_integer(template_dtype(name, 0, DType::f32)));
  }
  if (leaf == "searchsorted_cuda_kernel") {
    // (out, values, boundaries, sorter, a row of values, of boundaries, all values, right, one row)
    DType in = template_dtype(name, 0, DType::f32), out = template_dtype(name, 1, DType::i64);
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          std::int64_t n = a.integer(6), row = a.integer(5), each = a.integer(4);
          bool shared = a.integer(8) != 0;
          Pointwise work = stream(*signature, a, n, d);
          work.flops_per_element =
              2 * static_cast<int>(
                      std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(row, 1))));
          d.op.work = work;
          if (a.pointer(3) != 0 || n <= 0 || row < 0 || each <= 0) return;
          d.semantics.kind = Semantics::Kind::search;
          d.semantics.function = a.integer(7) != 0 ? "right" : "left";
          d.semantics.k = row;
          d.semantics.from = shared ? 0 : each;
          d.semantics.outputs = {line(a.pointer(0), out, n)};
          d.semantics.inputs = {line(a.pointer(1), in, n),
                                line(a.pointer(2), in, shared ? row : n / each * row)};
        },
        true);
  }
  if (leaf == "_unfold_backward_elementwise_kernel") {
    DType dtype = first_dtype(name.templates.size() > 2 ? name.templates[2] : kernel.demangled);
    return make(key, [=](const Arguments& a, Decoded& d) {
      Pointwise work;
      work.elements = a.integer(0);
      work.bytes_read = work.bytes_written = work.elements * whole_bytes(dtype);
      work.dtype = dtype;
      work.strided = true;
      work.vector = 1;
      d.op.work = work;
    });
  }
  return from_rows(index_table, kernel, name);
}

}  // namespace maya::decode
