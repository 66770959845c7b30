// Random numbers and dropout.
#include <algorithm>

#include "decode/operands.h"

namespace maya::decode {

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
    return make(
        whole(kernel, {0}),
        [dtype](const Arguments& a, Decoded& d) {
          Random work;
          work.elements = a.integer(0);
          if (work.elements <= 0)
            work.elements = static_cast<std::int64_t>(a.geometry().threads()) * 4;
          work.dtype = dtype;
          d.op.work = work;
        },
        is_integer(dtype));
  }
  if (starts_with(leaf, "fused_dropout_kernel")) {
    DType dtype = template_dtype(name, 0, DType::f32);
    return make(whole(kernel, {3}), [dtype](const Arguments& a, Decoded& d) {
      Random work;
      work.elements = a.integer(3);
      work.dtype = dtype;
      work.dropout = true;
      d.op.work = work;
      write(d, a.pointer(1), work.elements * std::max(1, bits(dtype) / 8));
      write(d, a.pointer(2), work.elements);
    });
  }
  if (leaf == "distribution_binary_elementwise_kernel" || leaf == "rrelu_with_noise_cuda_kernel" ||
      starts_with(leaf, "philox_single_key") || starts_with(leaf, "philox_multi_key") ||
      leaf == "rand_uniform_kernel") {
    Signature signature(kernel, name);
    DType dtype = template_dtype(name, 0, first_dtype(kernel.demangled));
    std::vector<std::size_t> integers = signature.integers();
    return make(signature.key(kernel), [=](const Arguments& a, Decoded& d) {
      Random work;
      for (std::size_t i : integers) work.elements = std::max(work.elements, a.integer(i));
      work.dtype = dtype == DType::unknown ? DType::f32 : dtype;
      d.op.work = work;
    });
  }
  return nullptr;
}

}  // namespace maya::decode
