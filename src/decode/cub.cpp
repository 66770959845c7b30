// CUB and Thrust device algorithms. A whole sort, scan or selection is several launches; each is
// described by the items it passes over, and what of them it reads and writes.
#include <algorithm>

#include "decode/moves.h"

namespace maya::decode {
namespace {

struct Pass {
  std::string_view leaf;
  int items;                // parameter with the item count; -1: the last integer, -2: the largest
  int reads[3], writes[3];  // parameters moved item by item; -1: none
};

// Parameter positions as CUB 1.x–3.x have them.
constexpr Pass passes[] = {
    {"DeviceRadixSortOnesweepKernel", 8, {5, 7, -1}, {4, 6, -1}},
    {"DeviceRadixSortHistogramKernel", 2, {1, -1, -1}, {-1, -1, -1}},
    {"DeviceRadixSortUpsweepKernel", 2, {0, -1, -1}, {-1, -1, -1}},
    {"DeviceRadixSortDownsweepKernel", 5, {0, 2, -1}, {1, 3, -1}},
    {"DeviceMergeSortBlockSortKernel", 5, {1, 2, -1}, {3, 4, -1}},
    {"DeviceMergeSortMergeKernel", 3, {1, 2, -1}, {4, 5, -1}},
    {"DeviceScanByKeyKernel", -1, {0, 2, -1}, {3, -1, -1}},
    {"DeviceReduceByKeyKernel", -2, {0, 2, -1}, {1, 3, -1}},
    {"DeviceSelectSweepKernel", -2, {0, 1, -1}, {2, -1, -1}},
    {"DeviceUniqueByKeySweepKernel", -2, {0, 1, -1}, {2, 3, -1}},
    {"DeviceAdjacentDifferenceDifferenceKernel", -1, {0, -1, -1}, {2, -1, -1}},
    {"DeviceRunLengthEncodeKernel", -1, {0, -1, -1}, {1, 2, -1}},
    {"DevicePartitionSweepKernel", -1, {0, -1, -1}, {1, -1, -1}},
    {"DeviceThreeWayPartitionKernel", -1, {0, -1, -1}, {1, -1, -1}},
    {"transform_vals", -3, {0, -1, -1}, {2, -1, -1}},
};

// Kernels that only set up or close a multi-launch algorithm: a few words.
constexpr std::string_view small[] = {"DeviceScanInitKernel",
                                      "DeviceCompactInitKernel",
                                      "DeviceScanByKeyInitKernel",
                                      "EmptyKernel",
                                      "RadixSortScanBinsKernel",
                                      "DeviceRadixSortExclusiveSumKernel",
                                      "DeviceMergeSortPartitionKernel",
                                      "DeviceAdjacentDifferenceInitKernel",
                                      "DeviceThreeWayPartitionInitKernel"};

DType item_type(const Name& name, int parameter) {
  if (parameter < 0 || static_cast<std::size_t>(parameter) >= name.parameters.size())
    return DType::unknown;
  const std::string& type = name.parameters[parameter];
  if (is_pointer(type)) return dtype_of(pointee(type));
  // An iterator over a pointer: "TransformInputIterator<bool, NonZeroOp<long>, long const*, long>"
  for (std::string_view mark : {" const*", "*"}) {
    std::size_t pointer = type.find(mark);
    if (pointer == std::string::npos) continue;
    std::size_t begin = type.find_last_of("<,", pointer);
    begin = begin == std::string::npos ? 0 : begin + 1;
    DType t = dtype_of(std::string_view(type).substr(begin, pointer - begin));
    if (t != DType::unknown) return t;
  }
  return first_dtype(type);
}

int item_bytes(const Name& name, int parameter) {
  if (parameter < 0 || static_cast<std::size_t>(parameter) >= name.parameters.size()) return 0;
  const std::string& type = name.parameters[parameter];
  if (contains(type, "NullType")) return 0;
  if (contains(type, "counting_iterator") || contains(type, "constant_iterator") ||
      contains(type, "ConstantInput") || contains(type, "CountingInput") ||
      contains(type, "discard"))
    return 0;
  if (is_pointer(type)) return size_of(pointee(type)) ? size_of(pointee(type)) : 4;
  DType t = item_type(name, parameter);  // device_ptr<long>, transform_iterator<…>
  return t == DType::unknown ? 4 : std::max(1, bits(t) / 8);
}

std::int64_t count(const Signature& s, const Arguments& a, int items) {
  std::int64_t n = 0;
  if (items >= 0) {
    n = a.integer(items);
  } else if (items == -1 && !s.integers().empty()) {
    n = a.integer(s.integers().back());
  } else if (items == -2) {
    n = s.largest_integer(a);
  } else if (items == -3) {
    n = 1;
  }
  return std::max<std::int64_t>(0, n);
}

// Items that are only carried along: any type of their size.
DType carried_type(const Name& name, int parameter, const std::string& text) {
  DType t = item_type(name, parameter);
  if (t != DType::unknown) return t;
  std::size_t at = text.find("OpaqueType<");
  if (at != std::string::npos) return type_of_bytes(std::atoi(text.c_str() + at + 11));
  return type_of_bytes(item_bytes(name, parameter));
}

bool descends(const Kernel& kernel, const Name& name) {
  // SortOrder 0 is ascending; before CUB 2.2 a bool IS_DESCENDING.
  return contains(kernel.demangled, "SortOrder)1") ||
         (name.templates.size() > 1 && name.templates[1] == "true");
}

// What a pass over items means for their values: sorting passes put all in order at once, which the
// following ones leave as it is.
Body meaning(const Kernel& kernel, const Name& name, const std::shared_ptr<Signature>& signature) {
  using Kind = Semantics::Kind;
  const std::string& leaf = name.leaf;
  if (leaf == "DeviceRadixSortOnesweepKernel") {
    DType k = item_type(name, 5),
          v = carried_type(name, 7, name.parameters.size() > 7 ? name.parameters[7] : "");
    bool pairs = item_bytes(name, 7) > 0, down = descends(kernel, name);
    return [=](const Arguments& a, Decoded& d) {
      std::int64_t n = a.integer(8);
      d.semantics.kind = Kind::sort;
      d.semantics.function = down ? "descending" : "ascending";
      d.semantics.outputs = {line(a.pointer(4), k, n)};
      d.semantics.inputs = {line(a.pointer(5), k, n)};
      if (!pairs) return;
      d.semantics.outputs.push_back(line(a.pointer(6), v, n));
      d.semantics.inputs.push_back(line(a.pointer(7), v, n));
    };
  }
  if (leaf == "DeviceSelectSweepKernel" && name.parameters.size() > 3 &&
      !signature->integers().empty()) {
    bool nonzero = contains(name.parameters[0], "counting_iterator") ||
                   contains(name.parameters[0], "CountingInput");
    bool unique = contains(kernel.demangled, "equal_to") || contains(kernel.demangled, "Equality");
    DType in = item_type(name, nonzero ? 1 : 0), out = item_type(name, 2),
          counter = item_type(name, 3);
    if (nonzero && !contains(name.parameters[1], "NonZeroOp") && !is_pointer(name.parameters[1]))
      return {};
    if (!nonzero && (!unique || !is_pointer(name.parameters[0]))) return {};
    return [=](const Arguments& a, Decoded& d) {
      std::int64_t n = a.integer(signature->integers()[0]);
      d.semantics.kind = nonzero ? Kind::nonzero_write : Kind::unique;
      d.semantics.inputs = {line(a.pointer(nonzero ? 1 : 0), in, n)};
      d.semantics.outputs = {line(a.pointer(2), out, n), line(a.pointer(3), counter, 1)};
    };
  }
  // Run lengths: the sums of ones. The iterator is thrust's in CUDA 13, CUB's own in CUDA 12.
  const bool of_ones = contains(kernel.demangled, "constant_iterator") ||
                       contains(kernel.demangled, "ConstantInputIterator");
  if (leaf == "DeviceReduceByKeyKernel" && of_ones && !signature->integers().empty()) {
    DType key = item_type(name, 0), length = item_type(name, 3), counter = item_type(name, 4);
    return [=](const Arguments& a, Decoded& d) {
      std::int64_t n = a.integer(signature->integers().size() > 1 ? signature->integers()[1]
                                                                  : signature->integers()[0]);
      d.semantics.kind = Kind::unique;
      d.semantics.inputs = {line(a.pointer(0), key, n)};
      d.semantics.outputs = {line(a.pointer(1), key, n), line(a.pointer(4), counter, 1),
                             line(a.pointer(3), length, n)};
    };
  }
  return {};
}

}  // namespace

Made prepare_cub(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  bool ours = contains(name.base, "cub::") || contains(name.base, "thrust::") ||
              contains(name.base, "cub_") || contains(name.base, "cuda_cub") ||
              starts_with(leaf, "Device") || leaf == "kernelHistogram1D";
  if (!ours) return nullptr;
  auto signature = std::make_shared<Signature>(kernel, name);
  std::vector<KeyPart> key = signature->key(kernel);

  for (std::string_view s : small)
    if (leaf == s)
      return make(key, [tiles = contains(leaf, "InitKernel"), by_key = contains(leaf, "ByKey"),
                        last = signature->parameters().size() - 1](const Arguments& a, Decoded& d) {
        Scan work;
        work.elements = static_cast<std::int64_t>(a.geometry().threads());
        work.bytes_written = work.elements * 8;
        d.op.work = work;
        if (!tiles) return;
        if (by_key) {  // (state of the tiles, keys, the key before each tile, items of a tile,
                       // tiles)
          write(d, a.pointer(0), (a.integer(last) + 32) * 16);
          write(d, a.pointer(2), a.integer(last) * 8);
          return;
        }
        // (state of the tiles, their number[, how many were selected]): a word or two per tile, and
        // per thread of a warp before the first.
        write(d, a.pointer(0), (a.integer(1) + 32) * 8);
        if (a.size(2) == 8) write(d, a.pointer(2), 8);
      });

  if (leaf == "kernelHistogram1D") {
    // (output, partial, input: TensorInfo, bins, min, max, total, op)
    DType in = signature->parameters().size() > 2 ? signature->parameters()[2].dtype : DType::i64;
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Tensor out = signature->tensor(a, 0), from = signature->tensor(a, 2);
          Scatter work;
          work.rows = std::max<std::int64_t>(1, from.elements);
          work.cols = 1;
          work.table_rows = a.integer(3);
          work.dtype = out.dtype;
          work.index = in;
          work.atomic = true;
          d.op.work = work;
          // Weights make the last parameter, a functor, carry their tensor.
          bool weighted = a.size(7) > 8;
          if (!weighted) d.semantics.kind = Semantics::Kind::histogram;
          d.semantics.function = "count";
          d.semantics.k = work.table_rows;
          // Bounds in the accumulation type: long, or float for all but double.
          auto bound = [&](std::size_t p) {
            if (is_integer(in)) return static_cast<double>(a.integer(p));
            return a.size(p) == 4 ? static_cast<double>(a.at<float>(p)) : a.at<double>(p);
          };
          d.semantics.scalar = bound(4);
          d.semantics.scalar2 = bound(5);
          d.semantics.outputs = {operand(out)};
          d.semantics.inputs = {operand(from)};
          write(d, out.address, out.elements * out.element_bytes);
          read(d, from.address, from.elements * from.element_bytes);
        },
        true);
  }
  if (leaf == "DeviceRadixSortSingleTileKernel") {
    DType k = item_type(name, 0),
          v = carried_type(name, 2, name.parameters.size() > 2 ? name.parameters[2] : "");
    int kb = item_bytes(name, 0), vb = item_bytes(name, 2);
    bool descending = descends(kernel, name);
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Sort work;
          work.elements = a.integer(4);
          work.key_bytes = kb;
          work.value_bytes = vb;
          d.op.work = work;
          d.semantics.kind = Semantics::Kind::sort;
          d.semantics.function = descending ? "descending" : "ascending";
          d.semantics.outputs = {line(a.pointer(1), k, work.elements)};
          d.semantics.inputs = {line(a.pointer(0), k, work.elements)};
          if (vb) {
            d.semantics.outputs.push_back(line(a.pointer(3), v, work.elements));
            d.semantics.inputs.push_back(line(a.pointer(2), v, work.elements));
          }
          write(d, a.pointer(1), work.elements * kb);
          write(d, a.pointer(3), work.elements * vb);
        },
        true);
  }
  if (contains(leaf, "SegmentedRadixSort")) {
    // One block per segment; offset_t { int stride, begin } gives the segment's length.
    int kb = item_bytes(name, 0), vb = item_bytes(name, 2);
    return make(
        whole(kernel, {4, 5}),
        [=](const Arguments& a, Decoded& d) {
          std::int64_t length = a.at<std::int32_t>(4);
          if (length <= 0 || a.size(4) != 8) length = static_cast<std::int64_t>(a.block(0)) * 16;
          Scan work;
          work.elements = static_cast<std::int64_t>(a.grid(0)) * length;
          work.bytes_read = work.bytes_written = work.elements * (kb + vb);
          d.op.work = work;
        },
        true);
  }
  if (leaf == "DeviceReduceKernel" || leaf == "DeviceReduceSingleTileKernel" ||
      leaf == "DeviceSegmentedReduceKernel") {
    DType in = item_type(name, 0), out = item_type(name, 1);
    bool nonzero = contains(kernel.demangled, "NonZeroOp");
    bool segmented = contains(leaf, "Segmented"), single = contains(leaf, "SingleTile");
    const std::string text = name.templates.empty() ? "" : kernel.demangled;
    std::string function = contains(text, "::plus<") || contains(text, "Sum")   ? "sum"
                           : contains(text, "Max") || contains(text, "maximum") ? "max"
                           : contains(text, "Min") || contains(text, "minimum") ? "min"
                                                                                : "";
    bool plain = !name.parameters.empty() && is_pointer(name.parameters[0]);
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Reduction work;
          work.inputs =
              segmented ? static_cast<std::int64_t>(a.geometry().threads()) : a.integer(2);
          work.outputs = single ? 1 : static_cast<std::int64_t>(a.grid(0));
          work.in = in == DType::unknown ? DType::f32 : in;
          work.out = out == DType::unknown ? DType::f32 : out;
          work.kind = ReduceKind::sum;
          d.op.work = work;
          write(d, a.pointer(1), work.outputs * std::max(1, bits(work.out) / 8));
          if (!single && !nonzero) return;
          if (nonzero) {
            d.semantics.kind = Semantics::Kind::nonzero_count;
            d.semantics.function = "nonzero";
          } else if (plain && !function.empty()) {
            d.semantics.kind = Semantics::Kind::reduce;
            d.semantics.function = function;
          } else {
            return;
          }
          d.semantics.outputs = {line(a.pointer(1), work.out, work.outputs)};
          d.semantics.inputs = {line(a.pointer(0), work.in, work.inputs)};
        },
        is_integer(out) || out == DType::unknown);
  }
  if (leaf == "DeviceScanKernel") {
    int ib = item_bytes(name, 0), ob = item_bytes(name, 1);
    DType in = item_type(name, 0), out = item_type(name, 1);
    bool sum = contains(kernel.demangled, "plus<") || contains(kernel.demangled, "::Sum");
    bool plain = name.parameters.size() > 1 && is_pointer(name.parameters[0]) &&
                 is_pointer(name.parameters[1]);
    bool inclusive = contains(kernel.demangled, "NullType");
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Scan work;
          work.elements = count(*signature, a, -1);
          work.bytes_read = work.elements * ib;
          work.bytes_written = work.elements * ob;
          d.op.work = work;
          write(d, a.pointer(1), work.bytes_written);
          // A scan of more than one tile is still one launch.
          if (!plain || !sum) return;
          d.semantics.kind = Semantics::Kind::scan;
          d.semantics.function = inclusive ? "sum" : "exclusive_sum";
          d.semantics.outputs = {line(a.pointer(1), out, work.elements)};
          d.semantics.inputs = {line(a.pointer(0), in, work.elements)};
        },
        is_integer(out) || out == DType::unknown);
  }
  for (const Pass& p : passes) {
    if (leaf != p.leaf) continue;
    int read_bytes = 0, write_bytes = 0;
    for (int i : p.reads) read_bytes += item_bytes(name, i);
    for (int i : p.writes) write_bytes += item_bytes(name, i);
    int items = p.items;
    Body follow = meaning(kernel, name, signature);
    bool merge = contains(leaf, "MergeSort");  // which buffer it writes is decided by a flag
    std::vector<std::pair<int, int>> written;
    for (int i : p.writes)
      if (i >= 0 && item_bytes(name, i) > 0) written.emplace_back(i, item_bytes(name, i));
    int counted = leaf == "DeviceRadixSortHistogramKernel" ? 0
                  : leaf == "DeviceRadixSortUpsweepKernel" ? 1
                                                           : -1;
    return make(
        key,
        [=](const Arguments& a, Decoded& d) {
          Scan work;
          work.elements = count(*signature, a, items);
          if (items == -3) work.elements = static_cast<std::int64_t>(a.geometry().threads());
          work.bytes_read = work.elements * read_bytes;
          work.bytes_written = work.elements * write_bytes;
          d.op.work = work;
          if (follow) follow(a, d);
          if (merge) return;
          for (auto [parameter, bytes] : written)
            write(d, a.pointer(parameter), work.elements * bytes);
          constexpr std::int64_t digits = 8 * 256 * 8;  // eight passes of 256 counters
          if (counted >= 0) write(d, a.pointer(counted), digits);
        },
        true);
  }
  // for_each, transform, Thrust agents: (n, f …) or (f, n): iterators hide in f, two words per item
  // assumed.
  bool generic = leaf == "static_kernel" || leaf == "transform_kernel" ||
                 leaf == "dynamic_kernel" || contains(leaf, "_kernel_agent") ||
                 starts_with(leaf, "Device") || contains(leaf, "for_each");
  if (!generic) return nullptr;
  DType t = first_dtype(name.templates.empty() ? kernel.demangled : name.templates.back());
  return make(
      key,
      [=](const Arguments& a, Decoded& d) {
        Pointwise work;
        work.elements = signature->integers().empty()
                            ? static_cast<std::int64_t>(a.geometry().threads())
                            : signature->largest_integer(a);
        std::int64_t limit = static_cast<std::int64_t>(a.geometry().threads()) * 256;
        work.elements =
            std::clamp<std::int64_t>(work.elements, 1, std::max<std::int64_t>(1, limit));
        int size = t == DType::unknown ? 8 : std::max(1, bits(t) / 8);
        work.bytes_read = work.bytes_written = work.elements * size;
        work.dtype = t == DType::unknown ? DType::i64 : t;
        work.vector = 1;
        d.op.work = work;
      },
      true);
}

}  // namespace maya::decode
