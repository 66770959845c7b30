// Concatenation, splitting, transposes, triangles, rolls: data moved, not computed.
#include <algorithm>

#include "decode/moves.h"

namespace maya::decode {
namespace {

Pointwise strided_copy(std::int64_t bytes, std::int64_t elements, DType dtype, bool strided) {
  Pointwise work;
  work.elements = elements;
  work.bytes_read = work.bytes_written = bytes;
  work.dtype = dtype;
  work.flops_per_element = 0;
  work.strided = strided;
  work.vector = strided ? 1 : 4;
  return work;
}

// roll_cuda_kernel(in, out, elements, dimension, first, size, stride, …): along the dimension the
// output begins with what lies at `first`.
Semantics rolled(const Arguments& a, std::int64_t elements, int bytes) {
  Semantics whole;
  std::int64_t first = a.integer(4), size = a.integer(5), stride = a.integer(6);
  if (size <= 0 || stride <= 0 || first < 0 || first >= size || elements % (size * stride) != 0)
    return whole;
  auto piece = [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    Semantics s;
    s.kind = Semantics::Kind::copy_cast;
    auto part = [&](std::uint64_t address, std::int64_t at) {
      auto o = line(address + static_cast<std::uint64_t>(at * stride * bytes), type_of_bytes(bytes),
                    stride);
      o.rank = 3;
      o.size[1] = count, o.stride[1] = stride * bytes;
      o.size[2] = elements / (size * stride), o.stride[2] = size * stride * bytes;
      return o;
    };
    s.inputs = {part(a.pointer(0), from)};
    s.outputs = {part(a.pointer(1), to)};
    return s;
  };
  whole = piece(first, 0, size - first);
  if (first > 0) whole.parts.push_back(piece(0, size - first, first));
  return whole;
}

// CatArrayBatchedCopy*<T, index, dims, batch, strides, …>(out, CatArrInputTensorMetadata, …): the
// table is { T* input[batch]; index offset[batch], dim_size[batch], elements[batch]; … }, grid.y
// inputs of it used.
class Cat : public Decoder {
 public:
  int batch{128}, index_bytes{4}, element_bytes{4}, per_vector{1}, dims{1};

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    std::uint64_t h = 7;
    int n = inputs(a);
    for (int i = 0; i < n; ++i) h = mix(h, static_cast<std::uint64_t>(elements(a, i)));
    if (capacity < 8) return 0;
    std::memcpy(out, &h, 8);
    return 8;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    std::int64_t total = 0;
    for (int i = 0, n = inputs(a); i < n; ++i) {
      std::int64_t count = elements(a, i);
      total += count;
      read(d, a.pointer(1, 8 * i), count * element_bytes);
    }
    Pointwise work =
        strided_copy(total * element_bytes, total, type_of_size(element_bytes), per_vector == 1);
    work.vector = per_vector;
    work.inputs = inputs(a);
    d.op.work = work;
    // Where each input lands is strided in the output: the whole of it counts as written.
    write(d, a.pointer(0), total * element_bytes);
    for (int i = 0, n = inputs(a); i < n; ++i) d.semantics.parts.push_back(placed(a, i));
    if (!d.semantics.parts.empty()) {
      auto last = std::move(d.semantics.parts.back());
      d.semantics.parts.pop_back();
      last.parts = std::move(d.semantics.parts);
      d.semantics = std::move(last);
    }
    return d;
  }

 private:
  // Where the table has its columns of numbers, and behind them a flag for each input.
  std::size_t columns() const { return 8u * static_cast<std::size_t>(batch); }
  std::size_t flags() const {
    return columns() + 3u * static_cast<std::size_t>(index_bytes) * static_cast<std::size_t>(batch);
  }
  std::int64_t word(const Arguments& a, int parameter, std::size_t index,
                    std::size_t base = 0) const {
    std::size_t at = base + static_cast<std::size_t>(index_bytes) * index;
    return index_bytes == 4 ? a.at<std::uint32_t>(parameter, at)
                            : a.at<std::int64_t>(parameter, at);
  }
  // One input: contiguous, to its slice of the output. Vectors are moved as units of their own.
  Semantics placed(const Arguments& a, int i) const {
    Semantics s;
    s.kind = Semantics::Kind::gather;
    s.function = "assign";
    std::int64_t unit = std::int64_t{element_bytes} * per_vector,
                 trailing = per_vector > 1 ? a.integer(4) : 1;
    std::int64_t first = word(a, 1, i, columns()), length = word(a, 1, batch + i, columns());
    if (per_vector > 1) {
      first = first * trailing / per_vector;
      length = length * trailing / per_vector;
    } else {
      first *= a.integer(4);  // the stride of the joined dimension
    }
    std::int64_t joined = a.integer(3), n = elements(a, i) / per_vector, inner = 1;
    Semantics::Operand out =
        line(a.pointer(0) + static_cast<std::uint64_t>(first * unit), type_of_bytes(unit), n);
    out.rank = 0;
    for (int d = dims - 1; d >= 0; --d) {
      std::int64_t size = d == joined ? length : word(a, 2, d);
      if (d == 0) size = n / std::max<std::int64_t>(1, inner);
      inner *= size;
      out.size[out.rank] = size;
      out.stride[out.rank++] = word(a, 2, 4 + d) * unit;
    }
    s.outputs = {out};
    s.inputs = {line(a.pointer(1, 8u * static_cast<std::size_t>(i)), type_of_bytes(unit), n)};
    if (a.at<std::uint8_t>(1, flags() + static_cast<std::size_t>(i)) == 0)
      s.inputs[0] = strided(a, i, out, unit);
    if (dims > 4 || unit > 16) s.inputs[0].address = 0;  // unknown
    return s;
  }
  // Behind the flags, { index size[4], stride[4]; } for each input.
  Semantics::Operand strided(const Arguments& a, int i, Semantics::Operand out,
                             std::int64_t unit) const {
    std::size_t width = static_cast<std::size_t>(index_bytes);
    std::size_t table = (flags() + static_cast<std::size_t>(batch) + width - 1) / width * width;
    std::size_t mine = table + 8u * width * static_cast<std::size_t>(i);
    out.address = a.raw(1, mine, 8u * width) ? a.pointer(1, 8u * static_cast<std::size_t>(i)) : 0;
    for (int d = dims - 1, fast = 0; d >= 0; --d, ++fast)
      out.stride[fast] = word(a, 1, 4 + static_cast<std::size_t>(d), mine) * unit;
    return out;
  }
  int inputs(const Arguments& a) const {
    if (!a.raw(1, 0, 8)) return 0;
    return static_cast<int>(std::clamp<std::uint64_t>(a.grid(1), 1, batch));
  }
  std::int64_t elements(const Arguments& a, int i) const {
    return word(a, 1, 2 * static_cast<std::size_t>(batch) + static_cast<std::size_t>(i), columns());
  }
};

}  // namespace

Made prepare_copy(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (starts_with(leaf, "CatArrayBatchedCopy")) {
    auto d = std::make_unique<Cat>();
    if (!name.templates.empty()) d->element_bytes = std::max(1, size_of(name.templates[0]));
    if (name.templates.size() > 1) d->index_bytes = size_of(name.templates[1]) == 8 ? 8 : 4;
    d->dims = static_cast<int>(std::clamp(template_number(name, 2, 1), 1L, 4L));
    d->batch = static_cast<int>(template_number(name, 3, 128));
    // …_vectorized<T, index, dims, batch, strides, alignment, per_vector>: counts stay in elements
    if (contains(leaf, "vectorized"))
      d->per_vector = static_cast<int>(std::max(1L, template_number(name, 6, 1)));
    return d;
  }
  auto signature = std::make_shared<Signature>(kernel, name);
  if (leaf == "transpose_copy_tiled_kernel") {
    // <T, …>(in, out, batch?, rows, cols, …): four sizes, the product of the last three or all
    int size = name.templates.empty() ? 4 : std::max(1, size_of(name.templates[0]));
    return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
      // A tile of 32×32 per block covers the data exactly but for the rims.
      std::int64_t rows = a.integer(2), cols = a.integer(3);
      std::int64_t n =
          rows * cols * std::max<std::int64_t>(1, static_cast<std::int64_t>(a.grid(2)));
      std::int64_t threads = static_cast<std::int64_t>(a.geometry().blocks()) * 1024;
      if (n <= 0 || n > threads * 64) n = threads;
      d.op.work = strided_copy(n * size, n, type_of_size(size), true);
      read(d, a.pointer(0), n * size);
      write(d, a.pointer(1), n * size);
    });
  }
  if (leaf == "triu_tril_kernel") {
    // <T, index, upper, …>(out, in, diagonal, …)
    bool upper = name.templates.size() > 2 && name.templates[2] == "true";
    return make(
        signature->key(kernel),
        [=](const Arguments& a, Decoded& d) {
          Tensor t = signature->tensor(a, 0);
          std::int64_t n = std::max<std::int64_t>(0, t.elements);
          Pointwise work = strided_copy(n * t.element_bytes, n, t.dtype, true);
          work.bytes_read /= 2;  // the kept triangle
          d.op.work = work;
          write(d, t.address, n * t.element_bytes);
          Tensor from = signature->tensor(a, 1);
          if (t.rank < 2 || t.rank > 8 || from.elements != n) return;
          d.semantics.kind = Semantics::Kind::triangle;
          d.semantics.function = upper ? "upper" : "lower";
          d.semantics.k = a.integer(2);
          d.semantics.outputs = {operand(t)};
          d.semantics.inputs = {operand(from)};
        },
        signature->parameters().empty() || is_integer(signature->parameters()[0].dtype));
  }
  if (leaf == "roll_cuda_kernel") {
    return make(
        signature->key(kernel),
        [=](const Arguments& a, Decoded& d) {
          std::int64_t n = a.integer(2);
          int size = signature->parameters()[0].element_bytes;
          d.op.work = strided_copy(n * size, n, signature->parameters()[0].dtype, true);
          read(d, a.pointer(0), n * size);
          write(d, a.pointer(1), n * size);
          d.semantics = rolled(a, n, size);
        },
        is_integer(signature->parameters()[0].dtype));
  }
  if (leaf == "chunk_cat_cuda_kernel") {
    // FSDP's copy-in of gradients: (…, bytes of a slice of the result, of a chunk, element size of
    // the result over that of the sources). A slice holds all chunks; the grid's z is the slices.
    return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
      const auto& integers = signature->integers();
      const std::int64_t threads = static_cast<std::int64_t>(a.geometry().threads()) * 16;
      std::int64_t written = threads, ratio = 1;
      if (integers.size() >= 3) {
        written = a.integer(integers[0]) * std::max<std::int64_t>(1, a.grid(2));
        ratio = std::clamp<std::int64_t>(a.integer(integers[2]), 1, 8);
      }
      if (written <= 0 || written > threads * 4096) written = threads, ratio = 1;
      Pointwise work = strided_copy(written, written, DType::u8, false);
      work.bytes_read = written / ratio;
      d.op.work = work;
    });
  }
  if (starts_with(leaf, "split_with_sizes_copy_out")) {
    // FSDP's copy-out: tables on the device; (…, bytes of a chunk of the source, chunks).
    return make(signature->key(kernel), [=](const Arguments& a, Decoded& d) {
      const auto& integers = signature->integers();
      const std::int64_t threads = static_cast<std::int64_t>(a.geometry().threads()) * 16;
      std::int64_t bytes = 0;
      if (integers.size() >= 2) bytes = a.integer(integers[0]) * a.integer(integers[1]);
      if (bytes <= 0 || bytes > threads * 4096) bytes = threads;
      d.op.work = strided_copy(bytes, bytes, DType::u8, false);
    });
  }
  return nullptr;
}

}  // namespace maya::decode
