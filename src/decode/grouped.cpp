// Grouped GEMMs of CUTLASS 3: many products of different sizes in one launch, the sizes an array of
// (m, n, k) on the device.
//
// The kernel's parameter opens with the mode and GroupProblemShape { groups; sizes on the device;
// sizes on the host }. The array is read where its values are known: copied from the host, or
// written by a kernel that says what it wrote, such as PyTorch's, which computes it from the ends
// of the groups.
#include <algorithm>
#include <optional>

#include "decode/gemm_name.h"
#include "decode/operands.h"

namespace maya::decode {
namespace {

struct Shape {
  std::int32_t m{}, n{}, k{};
};
constexpr std::int32_t most_groups = 65536;

class GroupedGemm : public Decoder {
 public:
  DType type{};

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    if (capacity < 16) return 0;
    std::uint64_t hash = 11;
    std::vector<Shape> shapes = sizes(Arguments(launch));
    for (const Shape& s : shapes) {
      hash = mix(hash, static_cast<std::uint64_t>(s.m) << 32 | static_cast<std::uint32_t>(s.n));
      hash = mix(hash, static_cast<std::uint64_t>(s.k));
    }
    std::uint64_t count = shapes.size();
    std::memcpy(out, &hash, 8);
    std::memcpy(out + 8, &count, 8);
    return 16;
  }

  Decoded decode(const Launch& launch) const override {
    Decoded d;
    d.op.geometry = launch.geometry;
    std::vector<Shape> shapes = sizes(Arguments(launch));
    Gemm work = gemm_of(type);
    work.groups = std::max<std::int64_t>(1, static_cast<std::int64_t>(shapes.size()));
    std::int64_t m = 0, n = 0, k = 0, products = 0;
    bool same_n = true, same_k = true;
    for (const Shape& s : shapes) {
      m += s.m, n += s.n, k += s.k;
      products += std::int64_t{s.m} * s.n * s.k;
      same_n &= s.n == shapes[0].n;
      same_k &= s.k == shapes[0].k;
    }
    if (products <= 0) {
      d.recognised = false;  // sizes nobody knows: better an unknown kernel than a wrong product
      d.op.work = OtherKernel{};
      return d;
    }
    if (same_n && same_k) {
      work.m = m, work.n = shapes[0].n, work.k = shapes[0].k;
    } else if (same_k) {  // columns are dealt out: the same product, transposed
      work.m = n, work.n = shapes[0].m, work.k = shapes[0].k;
    } else {  // weight gradients: the depth is dealt out
      work.batch = work.groups, work.groups = 1;
      work.m = m / work.batch, work.n = n / work.batch;
      work.k = std::max<std::int64_t>(
          1, products / std::max<std::int64_t>(1, work.m * work.n) / work.batch);
    }
    d.op.work = work;
    return d;
  }

 private:
  static std::vector<Shape> sizes(const Arguments& a) {
    constexpr std::int32_t grouped = 4;  // GemmUniversalMode
    std::int32_t groups = a.at<std::int32_t>(0, 8);
    if (a.at<std::int32_t>(0, 0) != grouped || groups < 1 || groups > most_groups) return {};
    std::vector<Shape> shapes(static_cast<std::size_t>(groups));
    std::size_t bytes = shapes.size() * sizeof(Shape);
    const void* known =
        a.pointer(0, 24) ? reinterpret_cast<const void*>(a.pointer(0, 24)) : nullptr;
    if (!known && a.launch().known) known = a.launch().known(a.pointer(0, 16), bytes);
    if (!known) return {};
    std::memcpy(shapes.data(), known, bytes);
    return shapes;
  }
};

// at::cuda::detail::prepare_grouped_gemm_data(…, tuple<int, int, int>* sizes, …, int const* ends,
// int m, int n, int k, Strides a, b, out, shape_a, shape_b, …): the dimension that is dealt out is
// negative, one thread per group.
class GroupSizes : public Decoder {
 public:
  std::size_t sizes{}, ends{};

  bool touches_values() const override { return true; }
  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments a(launch);
    if (capacity < 12) return 0;
    for (std::size_t i = 0; i < 3; ++i) {
      auto value = a.at<std::int32_t>(ends + 1 + i);
      std::memcpy(out + 4 * i, &value, 4);
    }
    return 12;
  }

  Decoded decode(const Launch& launch) const override {
    Arguments a(launch);
    Decoded d;
    d.op.geometry = launch.geometry;
    auto groups = static_cast<std::int64_t>(a.block(0));
    Pointwise work;
    work.elements = groups;
    work.bytes_read = groups * 4, work.bytes_written = groups * 72;
    work.dtype = DType::i32;
    d.op.work = work;
    d.semantics.kind = Semantics::Kind::literal;
    Semantics::Operand out;
    out.dtype = DType::i32, out.address = a.pointer(sizes), out.rank = 1;
    out.size[0] = 3 * groups, out.stride[0] = 4;
    d.semantics.outputs = {out};
    std::int64_t shape[3];
    for (std::size_t i = 0; i < 3; ++i) shape[i] = a.at<std::int32_t>(ends + 1 + i);
    std::vector<std::int64_t> dealt = lengths(a, groups, total(a, shape));
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t dimension : shape)
        d.semantics.literal.push_back(dimension < 0 ? dealt[static_cast<std::size_t>(g)]
                                                    : dimension);
    return d;
  }

 private:
  // Of the tensor that is not cut into groups by its first dimension: the whole of the dealt
  // dimension.
  std::int64_t total(const Arguments& a, const std::int64_t* shape) const {
    std::size_t shape_a = ends + 7, shape_b = ends + 8;
    if (shape[0] < 0) return a.at<std::int64_t>(shape_a, 0);
    if (shape[1] < 0) return a.at<std::int64_t>(shape_b, 8);
    return a.at<std::int64_t>(shape_a, 8);
  }
  // Evenly, where routing is unknown: what a balanced router aims at.
  std::vector<std::int64_t> lengths(const Arguments& a, std::int64_t groups,
                                    std::int64_t total) const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(groups),
                                     std::max<std::int64_t>(1, total / groups));
    auto bytes = static_cast<std::uint64_t>(groups) * 4;
    const void* known = a.launch().known ? a.launch().known(a.pointer(ends), bytes) : nullptr;
    if (!known) return result;
    std::vector<std::int32_t> at(static_cast<std::size_t>(groups));
    std::memcpy(at.data(), known, bytes);
    for (std::size_t g = 0; g < at.size(); ++g)
      result[g] = std::max<std::int64_t>(0, at[g] - (g > 0 ? at[g - 1] : 0));
    return result;
  }
};

}  // namespace

Made prepare_grouped(const Kernel& kernel, const Name& name) {
  if (name.leaf == "prepare_grouped_gemm_data") {
    auto d = std::make_unique<GroupSizes>();
    for (std::size_t i = 0; i < name.parameters.size(); ++i) {
      if (starts_with(name.parameters[i], "cute::tuple<int, int, int>") &&
          is_pointer(name.parameters[i]))
        d->sizes = i;
      if (name.parameters[i] == "int const*" || name.parameters[i] == "const int*") d->ends = i;
    }
    if (d->sizes == 0 || d->ends == 0 || kernel.parameter_sizes.size() < d->ends + 9)
      return nullptr;
    return d;
  }
  const std::string& detail = kernel.demangled.size() < 64 ? kernel.mangled : kernel.demangled;
  if (!contains(name.base, "cutlass") || !contains(detail, "GroupProblemShape")) return nullptr;
  auto d = std::make_unique<GroupedGemm>();
  d->type = gemm_operand_type(detail);
  return d;
}

}  // namespace maya::decode
