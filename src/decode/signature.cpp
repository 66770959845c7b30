// Kernels of known libraries that need no rule of their own: their parameter lists say which
// tensors go in and out, and the launch covers the elements one by one.
#include <algorithm>

#include "decode/functor.h"
#include "decode/operands.h"

namespace maya::decode {
namespace {

constexpr std::string_view libraries[] = {
    "at::native::", "at::cuda::", "c10d::",       "torch::",       "mslk::",           "magma",
    "gloo::",       "caffe2::",   "fbgemm_gpu::", "vision::ops::", "stream_executor::"};

// Names without a namespace of their own.
constexpr std::string_view names[] = {"_bfloat16_to_float_cuda_kernel",
                                      "_float_to_bfloat16_cuda_kernel",
                                      "compute_cuda_kernel",
                                      "elementwise_kernel_with_index",
                                      "one_shot_all_reduce_kernel",
                                      "two_shot_all_reduce_kernel",
                                      "two_shot_all_reduce_kernel_inplace",
                                      "multimem_all_reduce_kernel",
                                      "multimem_one_shot_reduce_kernel",
                                      "multimem_one_shot_all_reduce_kernel",
                                      "multimem_all_gather_kernel"};

constexpr std::string_view prefixes[] = {"nvshmem", "__nv_static_", "__cuda_sm", "_Kernel_",
                                         "trsm_template"};

bool magma(std::string_view leaf) {
  // MAGMA's LAPACK kernels: precision letter, routine.
  for (std::string_view part : {"getf2",
                                "laswp",
                                "lascl",
                                "laset",
                                "lacpy",
                                "swap_kernel",
                                "displace_pointers",
                                "set_pointer",
                                "trsm_",
                                "gemm_batched",
                                "gemm_template",
                                "potf2",
                                "potrf",
                                "geqr",
                                "larf",
                                "trtri",
                                "syrk",
                                "herk",
                                "symmetrize",
                                "pivinfo",
                                "transpose"})
    if (contains(leaf, part)) return true;
  return false;
}

// How many elements the launch covers: a size that fills the grid but for the last block, else
// tensors that know their size, else the threads.
std::int64_t covered(const Signature& s, const Arguments& a) {
  auto threads = static_cast<std::int64_t>(a.geometry().threads());
  auto block = static_cast<std::int64_t>(a.block(0) * a.block(1) * a.block(2));
  auto fits = [&](std::int64_t n) { return n > 0 && n <= threads && n > threads - block; };
  const auto& integers = s.integers();
  std::vector<std::int64_t> values;
  for (std::size_t i : integers) values.push_back(a.integer(i));
  for (std::int64_t v : values)
    if (fits(v)) return v;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t product = values[i];
    for (std::size_t j = i + 1; j < values.size() && j < i + 4; ++j) {
      if (product <= 0 || values[j] <= 0 || product > threads || values[j] > threads) break;
      product *= values[j];
      if (fits(product)) return product;
    }
  }
  if (std::int64_t n = s.largest(a); n > 0) return n;
  std::int64_t largest = s.largest_integer(a);
  if (largest > threads && largest <= threads * 1024) return largest;  // grid-stride loops
  return threads;
}

}  // namespace

Made prepare_signature(const Kernel& kernel, const Name& name) {
  bool known = false;
  for (std::string_view library : libraries) known |= starts_with(name.base, library);
  for (std::string_view n : names) known |= name.leaf == n;
  for (std::string_view p : prefixes)
    known |= starts_with(name.leaf, p) || starts_with(kernel.mangled, p);
  known |= magma(name.leaf) && name.base == name.leaf;
  auto signature = std::make_shared<Signature>(kernel, name);
  // Tensors that carry their sizes tell the work of any library's kernel.
  if (!known)
    for (std::size_t i = 0; i < signature->parameters().size(); ++i)
      known |= signature->is_tensor(i);
  if (!known) return nullptr;
  int flops = flops_of(name.leaf);
  bool values = false;
  for (const auto& p : signature->parameters())
    values |= p.written && (is_integer(p.dtype) || p.dtype == DType::unknown) &&
              p.kind != Signature::Parameter::Kind::integer &&
              p.kind != Signature::Parameter::Kind::other;
  return make(
      signature->key(kernel),
      [=](const Arguments& a, Decoded& d) {
        Pointwise work = stream(*signature, a, covered(*signature, a), d);
        work.flops_per_element = flops;
        d.op.work = work;
      },
      values);
}

}  // namespace maya::decode
