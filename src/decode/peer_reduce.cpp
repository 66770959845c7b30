// Collectives in one kernel over memory of the other GPUs: the all-reduce of vLLM and SGLang (IPC
// handles), and those of PyTorch's symmetric memory. Each rank launches the same kernel, and the
// kernels wait for each other: it is a collective, and its time is the network's to tell.
#include <algorithm>
#include <array>

#include "decode/serving_families.h"

namespace maya::decode {
namespace {

void make_collective(Decoded& d, CollectiveKind kind, std::int64_t bytes, DType dtype, int ranks) {
  Collective work;
  work.kind = kind, work.bytes = bytes, work.dtype = dtype;
  d.op.work = work;
  d.ranks = ranks;
}

// cross_device_reduce_1stage<T, ranks>(data*, signals, signal*, T* result, int rank, int size), and
// _2stage; sizes count packs of 16 bytes.
Made prepare_cross_device_reduce(const Kernel& kernel, const Name& name) {
  const std::size_t count = kernel.parameter_sizes.size();
  const int ranks = static_cast<int>(template_number(name, 1));
  if (ranks < 2 || count < 3) return nullptr;
  const DType dtype = template_dtype(name, 0, DType::bf16);
  // Measured apart from NCCL's, and from each other.
  const CollectiveLibrary library =
      starts_with(name.base, "sglang") ? CollectiveLibrary::sglang : CollectiveLibrary::vllm;
  const std::size_t size = count - 1, result = count - 3;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t bytes = a.integer(size) * 16;
    make_collective(d, CollectiveKind::all_reduce, bytes, dtype, ranks);
    std::get<Collective>(d.op.work).library = library;
    d.accesses.push_back({a.pointer(result), static_cast<std::uint64_t>(bytes), true, false});
  });
}

struct Symmetric {
  std::string_view leaf;
  CollectiveKind kind;
};
constexpr std::array symmetric{
    Symmetric{"one_shot_all_reduce_kernel", CollectiveKind::all_reduce},
    Symmetric{"two_shot_all_reduce_kernel", CollectiveKind::all_reduce},
    Symmetric{"two_shot_all_reduce_kernel_inplace", CollectiveKind::all_reduce},
    Symmetric{"multimem_all_reduce_kernel", CollectiveKind::all_reduce},
    Symmetric{"multimem_one_shot_reduce_kernel", CollectiveKind::reduce},
    Symmetric{"multimem_all_gather_kernel", CollectiveKind::all_gather},
};

// …<T, …>(…, size_t elements, uint32_t** signals, size_t rank, size_t ranks, …); of the all-gather,
// the bytes of each rank instead.
Made prepare_symmetric(const Kernel& kernel, const Name& name, CollectiveKind kind) {
  const auto signals = std::find(name.parameters.begin(), name.parameters.end(), "unsigned int**");
  const auto at = static_cast<std::size_t>(signals - name.parameters.begin());
  if (at == 0 || at + 2 >= kernel.parameter_sizes.size()) return nullptr;
  // two_shot_all_reduce_kernel<T, alignment, ranks, reduce_scatter, …>
  if (template_number(name, 3) != 0) kind = CollectiveKind::reduce_scatter;
  const bool gathers = kind == CollectiveKind::all_gather;
  const DType dtype = gathers ? DType::u8 : template_dtype(name, 0, DType::bf16);
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const std::int64_t ranks = std::clamp<std::int64_t>(a.integer(at + 2), 1, 1 << 20);
    const auto each = static_cast<std::int64_t>(maya::bytes(dtype));
    const std::int64_t total = a.integer(at - 1) * each * (gathers ? ranks : 1);
    make_collective(d, kind, total, dtype, static_cast<int>(ranks));
  });
}

}  // namespace

Made prepare_peer_reduce(const Kernel& kernel, const Name& name) {
  if (starts_with(name.leaf, "cross_device_reduce_"))
    return prepare_cross_device_reduce(kernel, name);
  for (const Symmetric& one : symmetric)
    if (name.leaf == one.leaf) return prepare_symmetric(kernel, name, one.kind);
  return nullptr;
}

}  // namespace maya::decode
