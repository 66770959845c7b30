// All-reduce in one kernel over memory of the other GPUs (IPC handles), as vLLM and SGLang launch
// it in place of NCCL's for small tensors. Each rank launches the same kernel, and the kernels wait
// for each other: it is a collective, and its time is the network's to tell.
#include <cstdlib>

#include "decode/rule.h"

namespace maya::decode {
namespace {

class PeerReduce : public RuleDecoder {
 public:
  PeerReduce(std::vector<KeyPart> parts, Body body, int members)
      : RuleDecoder(std::move(parts), std::move(body)), members_(members) {}
  int members() const override { return members_; }

 private:
  int members_;
};

}  // namespace

// cross_device_reduce_1stage<T, ranks>(data*, signals, signal*, T* result, int rank, int size), and
// _2stage; sizes count packs of 16 bytes.
Made prepare_peer_reduce(const Kernel& kernel, const Name& name) {
  if (!starts_with(name.leaf, "cross_device_reduce_") || name.templates.size() < 2) return nullptr;
  const int members = std::atoi(name.templates[1].c_str());
  const std::size_t count = kernel.parameter_sizes.size();
  if (members < 2 || count < 3) return nullptr;
  const DType dtype = template_dtype(name, 0, DType::bf16);
  const std::size_t size = count - 1, result = count - 3;
  auto body = [=](const Arguments& a, Decoded& d) {
    Collective work;
    work.kind = CollectiveKind::all_reduce;
    work.bytes = a.integer(size) * 16;
    work.dtype = dtype;
    d.op.work = work;
    d.accesses.push_back({a.pointer(result), static_cast<std::uint64_t>(work.bytes), true, false});
  };
  return std::make_unique<PeerReduce>(scalars(kernel, name), body, members);
}

}  // namespace maya::decode
