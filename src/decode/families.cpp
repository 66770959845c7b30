// The table of families, asked in order.
#include <algorithm>
#include <cstdlib>

#include "decode/rule.h"

namespace maya::decode {
namespace {

constexpr Prepare families[] = {
    prepare_elementwise, prepare_reduce,  prepare_multi_tensor, prepare_softmax,   prepare_norm,
    prepare_attention,   prepare_copy,    prepare_index,        prepare_embedding, prepare_loss,
    prepare_random,      prepare_sort,    prepare_scan,         prepare_cub,       prepare_pool,
    prepare_gemm,        prepare_package, prepare_signature,    prepare_triton,
};

}  // namespace

std::unique_ptr<Decoder> prepare(Kernel& kernel) {
  if (kernel.demangled.empty()) kernel.demangled = demangle(kernel.mangled);
  Name name = parse_name(kernel.demangled);
  if (kernel.parameter_sizes.size() > 255) kernel.parameter_sizes.resize(255);
  for (Prepare family : families) {
    try {
      if (Made made = family(kernel, name)) return made;
    } catch (...) {  // a name no family foresaw: the next one, or the unknown
    }
  }
  return prepare_unknown(kernel, name);
}

}  // namespace maya::decode
