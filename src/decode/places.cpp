// Small integer kernels of ATen whose meaning the host depends on: their op is read off the
// signature like that of others, their values are followed.
#include "decode/moves.h"

namespace maya::decode {
namespace {

class Followed : public Decoder {
 public:
  Made op;
  Body meaning;

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    return op->key(launch, out, capacity);
  }
  bool touches_values() const override { return true; }
  Decoded decode(const Launch& launch) const override {
    Decoded d = op->decode(launch);
    meaning(Arguments(launch), d);
    return d;
  }
};

Made follow(const Kernel& kernel, const Name& name, Body meaning) {
  auto d = std::make_unique<Followed>();
  d->op = prepare_signature(kernel, name);
  if (!d->op) return nullptr;
  d->meaning = std::move(meaning);
  return d;
}

// Rows and columns of a triangle, all rows first. Its rows are `first`, first ± 1, … long, at most
// `columns`; an upper one begins with rows of full length and shifts to the right as it shrinks.
std::vector<std::int64_t> triangle(bool upper, std::int64_t offset, std::int64_t first,
                                   std::int64_t columns, std::int64_t full, std::int64_t n) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(2 * n));
  std::int64_t at = 0, full_rows = upper && columns > 0 ? full / columns : 0;
  for (std::int64_t row = 0; at < n && row <= n + full_rows; ++row) {
    std::int64_t shift = upper ? std::max<std::int64_t>(0, row - full_rows) : 0;
    std::int64_t length = row < full_rows ? columns
                          : upper         ? first - shift
                                          : std::min(first + row, columns);
    for (std::int64_t i = 0; i < length && at < n; ++i, ++at) {
      places[static_cast<std::size_t>(at)] = upper ? row : row + offset;
      places[static_cast<std::size_t>(n + at)] = upper ? shift + i + offset : i;
    }
  }
  return places;
}

}  // namespace

Made prepare_places(const Kernel& kernel, const Name& name) {
  using Kind = Semantics::Kind;
  const std::string& leaf = name.leaf;
  if (leaf == "write_indices") {  // (indices, sizes[25], dims, n, …)
    return follow(kernel, name, [](const Arguments& a, Decoded& d) {
      std::int64_t dims = a.integer(2), n = a.integer(3);
      std::size_t width = a.size(1) / 25;
      if (dims < 1 || dims > 8 || n < 1) return;
      Semantics::Operand out = line(a.pointer(0), DType::i64, n);
      out.rank = static_cast<std::int32_t>(dims);
      for (std::int64_t i = 0; i < dims; ++i) {
        auto from = static_cast<std::size_t>(dims - 1 - i) * width;
        out.size[i] = width == 8 ? a.at<std::int64_t>(1, from) : a.at<std::int32_t>(1, from);
      }
      d.semantics.kind = Kind::unravel;
      d.semantics.k = n;
      d.semantics.outputs = {out};
    });
  }
  if (leaf == "compute_cuda_kernel") {  // repeat_interleave: (repeats, cumulative, out, n, out n)
    DType t = template_dtype(name, 0, DType::i64);
    return follow(kernel, name, [t](const Arguments& a, Decoded& d) {
      d.semantics.kind = Kind::repeat;
      d.semantics.inputs = {line(a.pointer(0), t, a.integer(3)),
                            line(a.pointer(1), DType::i64, a.integer(3))};
      d.semantics.outputs = {line(a.pointer(2), t, a.integer(4))};
    });
  }
  if (leaf == "tril_indices_kernel" || leaf == "triu_indices_kernel") {
    // (out, offset of the rows or columns, length of the first row, columns, size of the part that
    // is no triangle (upper: before it), n)
    DType t = template_dtype(name, 0, DType::i64);
    bool upper = leaf == "triu_indices_kernel";
    return follow(kernel, name, [=](const Arguments& a, Decoded& d) {
      std::int64_t n = a.integer(5);
      if (n < 1 || n > 1 << 16) return;
      d.semantics.kind = Kind::literal;
      d.semantics.literal =
          triangle(upper, a.integer(1), a.integer(2), a.integer(3), a.integer(4), n);
      d.semantics.outputs = {line(a.pointer(0), t, 2 * n)};
    });
  }
  if (leaf == "adjacent_difference_kernel") {  // (n, in, int* out)
    DType t = first_dtype(name.parameters.size() > 1 ? name.parameters[1] : "long");
    return follow(kernel, name, [t](const Arguments& a, Decoded& d) {
      d.semantics.kind = Kind::differences;
      d.semantics.inputs = {line(a.pointer(1), t, a.integer(0))};
      d.semantics.outputs = {line(a.pointer(2), DType::i32, a.integer(0))};
    });
  }
  if (leaf == "scatter_kernel" && name.parameters.size() == 4) {  // (n, values, indices, out)
    return follow(kernel, name, [](const Arguments& a, Decoded& d) {
      std::int64_t n = a.integer(0);
      d.semantics.kind = Kind::scatter;
      d.semantics.function = "assign";
      Semantics::Operand out = line(a.pointer(3), DType::i64, n);
      out.stride[0] = 0;
      d.semantics.outputs = {out};
      d.semantics.inputs = {line(a.pointer(1), DType::i64, n), line(a.pointer(2), DType::i64, n)};
      d.semantics.steps = {{n, 8}};
    });
  }
  if (leaf == "fill_reverse_indices_kernel") {  // (out, n, divisor of the segment's length)
    return follow(kernel, name, [](const Arguments& a, Decoded& d) {
      std::int64_t n = a.integer(1), segment = a.at<std::int32_t>(2);
      if (n < 1 || segment < 1) return;
      Semantics::Operand out = line(a.pointer(0), DType::i64, segment);
      // Counts from zero in each segment.
      for (std::int64_t at = 0; at + segment <= n && n / segment <= 4096; at += segment) {
        Semantics part;
        part.kind = Kind::arange;
        part.scalar2 = 1;
        part.outputs = {out};
        out.address += static_cast<std::uint64_t>(segment) * 8;
        if (at + 2 * segment <= n)
          d.semantics.parts.push_back(part);
        else {
          part.parts = std::move(d.semantics.parts);
          d.semantics = std::move(part);
          break;
        }
      }
    });
  }
  if (leaf ==
      "amp_update_scale_cuda_kernel") {  // (scale, tracker, found_inf, growth, backoff, interval)
    return follow(kernel, name, [](const Arguments& a, Decoded& d) {
      d.semantics.kind = Kind::loss_scale;
      d.semantics.outputs = {line(a.pointer(0), DType::f32, 1), line(a.pointer(1), DType::i32, 1)};
      d.semantics.inputs = {line(a.pointer(2), DType::f32, 1)};
      d.semantics.scalar = a.at<double>(3);
      d.semantics.scalar2 = a.at<double>(4);
      d.semantics.k = a.integer(5);
    });
  }
  return nullptr;
}

}  // namespace maya::decode
