// All-reduce in one kernel over memory of the other GPUs (IPC handles), as vLLM and SGLang launch
// it in place of NCCL's for small tensors. Each rank launches the same kernel, and the kernels wait
// for each other: it is a collective, and its time is the network's to tell.
#include "decode/peer_reduce.h"

#include <cstdlib>

#include "decode/serving_families.h"

namespace maya::decode {
namespace {

// cross_device_reduce_1stage<T, ranks>(…), and _2stage.
int ranks_of(const Name& name) {
  if (!starts_with(name.leaf, "cross_device_reduce_") || name.templates.size() < 2) return 0;
  const int ranks = std::atoi(name.templates[1].c_str());
  return ranks > 1 ? ranks : 0;
}

}  // namespace

int meeting_ranks(const std::string& demangled) {
  return demangled.find("cross_device_reduce_") == std::string::npos
             ? 0
             : ranks_of(parse_name(demangled));
}

// …(data*, signals, signal*, T* result, int rank, int size); sizes count packs of 16 bytes.
Made prepare_peer_reduce(const Kernel& kernel, const Name& name) {
  const std::size_t count = kernel.parameter_sizes.size();
  if (ranks_of(name) == 0 || count < 3) return nullptr;
  const DType dtype = template_dtype(name, 0, DType::bf16);
  const std::size_t size = count - 1, result = count - 3;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Collective work;
    work.kind = CollectiveKind::all_reduce;
    work.bytes = a.integer(size) * 16;
    work.dtype = dtype;
    d.op.work = work;
    d.accesses.push_back({a.pointer(result), static_cast<std::uint64_t>(work.bytes), true, false});
  });
}

}  // namespace maya::decode
