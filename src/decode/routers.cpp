// The small kernels around a mixture of experts: they choose the experts of each token and sort
// tokens by expert. What they compute is a few numbers a thread; what they say of the layer, how
// many experts there are and how many a token gets, is kept for the products (experts.h).
#include <cstdlib>

#include "decode/experts.h"
#include "decode/serving_families.h"
#include "decode/traffic.h"

namespace maya::decode {
namespace {

// Where the numbers stand among the parameters of one type; -1: they do not say it.
struct Place {
  std::string_view leaf, type;
  int experts{-1}, top{-1};
};
constexpr Place places[] = {
    // (scores, finished, out, int rows, indices, rows, int top, int from, int until, …)
    {"topkGating", "int", 3, 1},
    // (scores, finished, out, indices, rows, int experts, int top, int from, int until, …)
    {"moeTopK", "int", 0, 1},
    // (scores, values, indices, bias, long tokens, experts, groups, groups chosen, top, …)
    {"grouped_topk_fused_kernel", "long", 1, 4},
    // (scores, values, indices, bias, long tokens, groups, groups chosen, top, experts, …)
    {"grouped_topk_fused_small_expert_count_kernel", "long", 4, 3},
    // (chosen, tokens, experts, total, [map,] int experts, …)
    {"moe_align_block_size_kernel", "int", 0, -1},
    {"moe_align_block_size_small_batch_expert_kernel", "int", 0, -1},
    {"count_and_sort_expert_tokens_kernel", "", -1, -1},
    {"batched_moe_align_block_size_kernel", "", -1, -1},
    {"moeSoftmax", "", -1, -1},
    {"moeSigmoid", "", -1, -1},
    {"shuffleInputRows", "", -1, -1},
};

Made router(const Kernel& kernel, const Name& name, const Place& place) {
  const auto numbers = positions(name, place.type);
  auto at = [numbers](const Arguments& a, int which) -> std::int64_t {
    if (which < 0 || static_cast<std::size_t>(which) >= numbers.size()) return 0;
    return a.integer(numbers[static_cast<std::size_t>(which)]);
  };
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    const Router told{at(a, place.experts), at(a, place.top)};
    constexpr std::int64_t most = 1 << 16;
    const bool sound = told.experts >= 0 && told.experts <= most && told.top >= 0 &&
                       (told.experts == 0 || told.top <= told.experts);
    if (sound) note_router(told);
    const auto n = static_cast<std::int64_t>(a.geometry().threads());
    d.op.work = traffic(n, n * 4, n * 4, DType::i32, 4);
  });
}

// The scores themselves, of few tokens: router_gemm_kernel_…<T, threads, width, tokens, experts,
// hidden>(scores, tokens, weights) and gpt_oss_router_gemm_kernel(scores, weights, tokens, bias,
// int experts, tokens, hidden, …).
Made scores(const Kernel& kernel, const Name& name, bool in_template) {
  const auto ints = positions(name, "int");
  if (!in_template && ints.size() < 3) return nullptr;
  const std::int64_t tokens = template_number(name, 3), experts = template_number(name, 4),
                     hidden = template_number(name, 5);
  const DType out = contains(name.leaf, "float") ? DType::f32 : DType::bf16;
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Gemm work;
    work.m = in_template ? experts : a.integer(ints[0]);
    work.n = in_template ? tokens : a.integer(ints[1]);
    work.k = in_template ? hidden : a.integer(ints[2]);
    work.a = work.b = work.compute = DType::bf16, work.d = out;
    work.transpose_a = true;
    note_router({work.m, 0});
    write(d, a.pointer(0), work.m * work.n * whole_bytes(out));
    d.op.work = work;
  });
}

}  // namespace

Made prepare_routers(const Kernel& kernel, const Name& name) {
  if (name.leaf == "gpt_oss_router_gemm_kernel") return scores(kernel, name, false);
  if (starts_with(name.leaf, "router_gemm_kernel_")) return scores(kernel, name, true);
  for (const Place& place : places)
    if (starts_with(name.leaf, place.leaf)) return router(kernel, name, place);
  return nullptr;
}

}  // namespace maya::decode
