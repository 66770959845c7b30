// The table of families, asked in order.
#include <algorithm>
#include <cstdlib>

#include "decode/operands.h"
#include "decode/serving_families.h"

namespace maya::decode {
namespace {

constexpr Prepare families[] = {
    prepare_elementwise,  prepare_reduce,
    prepare_multi_tensor, prepare_softmax,
    prepare_norm,         prepare_flash2,
    prepare_flash3,       prepare_memory_efficient,
    prepare_copy,         prepare_index,
    prepare_embedding,    prepare_loss,
    prepare_random,       prepare_sort,
    prepare_scan,         prepare_cub,
    prepare_pool,         prepare_grouped,
    prepare_gemm,         prepare_package,
    prepare_engine,       prepare_peer_reduce,
    prepare_flashinfer,   prepare_sglang,
    prepare_routers,      prepare_expert_products,
    prepare_signature,    prepare_triton,
};

// Kernels in Triton whose work follows from data that lies on the device: read off their code they
// would seem to do nothing.
constexpr Prepare steered[] = {prepare_fused_experts, prepare_matmul_ogs, prepare_triton_attention};

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

// What our NVRTC leaves of source it cannot compile: kernels without code, of which some are known
// to do what a precompiled kernel does.
struct Uncompiled {
  bool is{};
  std::string stands_for;
  std::string touches;  // see prepare_source
};
Uncompiled uncompiled(const Kernel& kernel) {
  Uncompiled result{starts_with(kernel.ptx, "// maya-nvrtc"), {}, {}};
  if (!result.is) return result;
  auto said = [&](std::string_view what) -> std::string_view {
    const std::string mark = "\n// " + kernel.mangled + std::string(what);
    std::size_t at = kernel.ptx.find(mark);
    if (at == std::string_view::npos) return {};
    at += mark.size();
    return kernel.ptx.substr(at, kernel.ptx.find('\n', at) - at);
  };
  result.stands_for = said(" stands for ");
  result.touches = said(" touches ");
  return result;
}

}  // namespace

std::unique_ptr<Decoder> prepare(Kernel& kernel) {
  if (kernel.demangled.empty()) kernel.demangled = demangle(kernel.mangled);
  const Uncompiled source = uncompiled(kernel);
  Name name = parse_name(source.stands_for.empty() ? kernel.demangled : source.stands_for);
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
  auto read_off = [&] {
    return std::any_of(std::begin(steered), std::end(steered), ask) || ask(prepare_triton);
  };
  if (source.is ? !source.stands_for.empty() : !(generated && read_off()))
    std::any_of(std::begin(families), std::end(families), ask);
  if (!made && !source.touches.empty()) made = prepare_source(kernel, source.touches);
  if (!made) made = prepare_unknown(kernel, name);
  if (auto told = made->read_only(); !told.empty()) kernel.read_only = std::move(told);
  return made;
}

}  // namespace maya::decode
