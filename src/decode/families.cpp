// The table of families, asked in order.
#include <algorithm>
#include <cstdlib>

#include "decode/operands.h"

namespace maya::decode {
namespace {

constexpr Prepare families[] = {
    prepare_elementwise, prepare_reduce, prepare_multi_tensor,     prepare_softmax, prepare_norm,
    prepare_flash2,      prepare_flash3, prepare_memory_efficient, prepare_copy,    prepare_index,
    prepare_embedding,   prepare_loss,   prepare_random,           prepare_sort,    prepare_scan,
    prepare_cub,         prepare_pool,   prepare_grouped,          prepare_gemm,    prepare_package,
    prepare_signature,   prepare_triton,
};

// Only where the name lists exactly the parameters the code has.
std::vector<bool> read_only(const Kernel& kernel, const Name& name) {
  std::vector<bool> result(kernel.parameter_sizes.size());
  if (name.parameters.size() != result.size()) return result;
  Signature signature(kernel, name);
  using Kind = Signature::Parameter::Kind;
  for (std::size_t i = 0; i < signature.parameters().size() && i < result.size(); ++i) {
    const auto& parameter = signature.parameters()[i];
    bool tensor = parameter.kind == Kind::pointer || parameter.kind == Kind::tensor_info ||
                  parameter.kind == Kind::accessor;
    result[i] = parameter.kind == Kind::integer || (tensor && !parameter.written);
  }
  return result;
}

}  // namespace

std::unique_ptr<Decoder> prepare(Kernel& kernel) {
  if (kernel.demangled.empty()) kernel.demangled = demangle(kernel.mangled);
  Name name = parse_name(kernel.demangled);
  if (kernel.parameter_sizes.size() > 255) kernel.parameter_sizes.resize(255);
  kernel.read_only = read_only(kernel, name);
  Made made;
  auto ask = [&](Prepare family) {
    try {
      made = family(kernel, name);
    } catch (...) {  // a name no family foresaw: the next one, or the unknown
    }
    return made != nullptr;
  };
  // Names of generated kernels list what was fused (…_cat_mm_transpose_view_21): the code itself
  // knows better than any family that looks for such words.
  bool generated = kernel.mangled.rfind("_Z", 0) != 0;
  if (!(generated && ask(prepare_triton)))
    std::any_of(std::begin(families), std::end(families), ask);
  if (!made) made = prepare_unknown(kernel, name);
  if (auto told = made->read_only(); !told.empty()) kernel.read_only = std::move(told);
  return made;
}

}  // namespace maya::decode
