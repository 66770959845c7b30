// Random numbers and dropout.
#include <algorithm>

#include "decode/operands.h"
#include "decode/table.h"

namespace maya::decode {

namespace {

constexpr Row random_table[] = {
    // (keys, data, mask, n, philox): shuffles what fell on equal keys, which leaves a permutation
    // one.
    {.kernel = "randperm_handle_duplicate_keys_kernel",
     .op = "pointwise dtype=i32 elements=a3 bytes_read=elements*4",
     .touches = "r0=bytes_read"},
    // (in, out, mask, n, …)
    {.kernel = "fused_dropout_kernel*",
     .op = "random dropout=1 dtype=T0 elements=a3",
     .touches = "w1=elements*size(T0) w2=elements"},
};

// The transform of a contiguous tensor: { char* out; int stride; uint64 range; int64 base }. Which
// numbers the generator would have drawn does not matter; that they lie in the range does.
Semantics integers_of(const Arguments& a, DType dtype, std::int64_t elements) {
  Semantics s;
  constexpr int philox = 1, transform = 3;
  const auto range = a.at<std::uint64_t>(transform, 16);
  if (a.size(transform) != 32 || a.at<std::int32_t>(transform, 8) != bits(dtype) / 8 ||
      range == 0 || range > INT64_MAX)
    return s;
  s.kind = Semantics::Kind::random;
  s.k = static_cast<std::int64_t>(range);
  s.from = a.at<std::int64_t>(transform, 24);
  s.seed = mix(a.at<std::uint64_t>(philox, 0), a.at<std::uint64_t>(philox, 8));
  Semantics::Operand out;
  out.dtype = dtype;
  out.address = a.pointer(transform, 0);
  out.rank = 1, out.size[0] = elements, out.stride[0] = bits(dtype) / 8;
  s.outputs = {out};
  return s;
}

}  // namespace

std::span<const Row> random_rows() { return random_table; }

Made prepare_random(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (leaf == "distribution_elementwise_grid_stride_kernel") {
    // <acc, unroll, dist, transform>(numel, philox, dist, transform)
    DType dtype = DType::f32;
    std::size_t at = kernel.demangled.find("distribution_nullary_kernel<");
    if (at != std::string::npos)
      dtype = first_dtype(std::string_view(kernel.demangled).substr(at + 28));
    else if (!name.templates.empty())
      dtype = template_dtype(name, 0, DType::f32);
    if (dtype == DType::unknown) dtype = DType::f32;
    const bool bounded = is_integer(dtype) && contains(kernel.demangled, "random_from_to_kernel");
    return make(
        whole(kernel, {0}),
        [dtype, bounded](const Arguments& a, Decoded& d) {
          Random work;
          work.elements = a.integer(0);
          if (work.elements <= 0)
            work.elements = static_cast<std::int64_t>(a.geometry().threads()) * 4;
          work.dtype = dtype;
          d.op.work = work;
          if (bounded) d.semantics = integers_of(a, dtype, work.elements);
        },
        is_integer(dtype));
  }
  if (Made made = from_rows(random_table, kernel, name)) return made;
  if (leaf == "distribution_binary_elementwise_kernel" || leaf == "rrelu_with_noise_cuda_kernel" ||
      starts_with(leaf, "philox_single_key") || starts_with(leaf, "philox_multi_key") ||
      leaf == "rand_uniform_kernel") {
    Signature signature(kernel, name);
    DType dtype = template_dtype(name, 0, first_dtype(kernel.demangled));
    return make(signature.key(kernel),
                [dtype, integers = signature.integers()](const Arguments& a, Decoded& d) {
                  Random work;
                  for (std::size_t i : integers)
                    work.elements = std::max(work.elements, a.integer(i));
                  work.dtype = dtype == DType::unknown ? DType::f32 : dtype;
                  d.op.work = work;
                });
  }
  return nullptr;
}

}  // namespace maya::decode
