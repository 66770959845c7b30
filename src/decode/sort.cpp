// ATen's own sorts and selections: small sorts in place, top-k, median, k-th value.
#include <algorithm>

#include "decode/operands.h"
#include "decode/table.h"

namespace maya::decode {
namespace {

constexpr Row sort_table[] = {
    // (…, slice size, …, slices): 256 counters of two bytes for every block
    {.kernel = "computeBlockDigitCounts|radixFindKthValues",
     .op = "reduction in=T0 out=i16 kind=other inputs=a1*max(a3,1) outputs=blocks*256"},
    {.kernel = "computeBlockwiseWithinKCounts",
     .op = "scan elements=blocks*256 bytes_read=elements*2 bytes_written=blocks*8"},
    {.kernel = "computeBlockwiseKthCounts|computeDigitCumSum",
     .op = "scan elements=threads bytes_read=elements*2 bytes_written=blocks*8"},
    {.kernel = "gatherMedian",
     .op = "sort elements=a3 segments=a4 top=1 key_bytes=size(T0) value_bytes=8",
     .always = true},
    {.kernel = "gatherKthValue",
     .op = "sort elements=a1 segments=a3 top=1 key_bytes=size(T0) value_bytes=8",
     .always = true},
};

// Slices of a tensor as an operand: the slice itself, then the collapsed other dimensions.
Semantics::Operand slices(const Tensor& t, std::int64_t length, std::int64_t stride) {
  Semantics::Operand o;
  o.dtype = t.dtype;
  o.address = t.address;
  o.size[0] = length;
  o.stride[0] = stride * t.element_bytes;
  o.rank = 1;
  for (int d = t.rank - 1; d >= 0 && o.rank < 8; --d) {
    if (t.size[d] == 1) continue;  // the sliced dimension, and those that do not matter
    o.size[o.rank] = t.size[d];
    o.stride[o.rank] = t.stride[d] * t.element_bytes;
    ++o.rank;
  }
  return o;
}

}  // namespace

std::span<const Row> sort_rows() { return sort_table; }

Made prepare_sort(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  auto signature = std::make_shared<Signature>(kernel, name);
  std::vector<KeyPart> key = signature->key(kernel);

  if (ends_with(leaf, "SortKVInPlace")) {
    // <A, -1, …, K, V, …>(keys, slices, slice size, slice stride, values, value stride, order)
    DType k = DType::unknown, v = DType::i64;
    for (const std::string& t : name.templates) {
      DType type = dtype_of(t);
      if (type == DType::unknown) continue;
      if (k == DType::unknown)
        k = type;
      else {
        v = type;
        break;
      }
    }
    bool descending = contains(kernel.demangled, "GTOp");
    bool radix = starts_with(leaf, "radix");
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Sort work;
          work.segments = a.integer(1);
          work.elements = a.integer(2);
          work.key_bytes = whole_bytes(k);
          work.value_bytes = whole_bytes(v);
          d.op.work = work;
          Tensor keys = signature->tensor(a, 0), values = signature->tensor(a, 4);
          d.semantics.kind = Semantics::Kind::sort;
          bool down = radix ? a.at<std::uint8_t>(6) != 0 : descending;
          d.semantics.function = down ? "descending" : "ascending";
          Semantics::Operand ko = slices(keys, work.elements, a.integer(3));
          Semantics::Operand vo = slices(values, work.elements, a.integer(5));
          d.semantics.outputs = {ko, vo};
          d.semantics.inputs = {ko, vo};
          write(d, keys.address, work.segments * work.elements * work.key_bytes);
          write(d, values.address, work.segments * work.elements * work.value_bytes);
        },
        true);
  }
  if (leaf == "gatherTopK") {
    // (input, slice size, k, largest, slices, stride, top-k values, stride, indices, stride, …)
    DType t = template_dtype(name, 0, DType::f32);
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Sort work;
          work.elements = a.integer(1);
          work.top = a.integer(2);
          work.segments = a.integer(4);
          work.key_bytes = whole_bytes(t);
          work.value_bytes = 8;
          d.op.work = work;
          Tensor in = signature->tensor(a, 0), values = signature->tensor(a, 6),
                 indices = signature->tensor(a, 8);
          write(d, values.address, work.segments * work.top * work.key_bytes);
          write(d, indices.address, work.segments * work.top * 8);
          d.semantics.kind = Semantics::Kind::topk;
          d.semantics.function = a.at<std::uint8_t>(3) ? "largest" : "smallest";
          d.semantics.k = work.top;
          d.semantics.outputs = {slices(values, work.top, a.integer(7)),
                                 slices(indices, work.top, a.integer(9))};
          d.semantics.inputs = {slices(in, work.elements, a.integer(5))};
        },
        true);
  }
  return from_rows(sort_table, kernel, name);
}

}  // namespace maya::decode
