// Embedding tables: backward by feature, by segments, and bags.
#include "decode/table.h"

namespace maya::decode {
namespace {

constexpr Row embedding_table[] = {
    {.kernel = "embedding_backward_feature_kernel|compute_grad_weight",
     .op = "scatter dtype=T0 index=I rows=a3 cols=max(a4,1)"},
    {.kernel = "compute_grad_weight_bags", .op = "scatter dtype=T0 index=I rows=a4 cols=max(a5,1)"},
    {.kernel = "compute_grad_weight_atomic_accumulate",
     .op = "scatter dtype=T0 index=I atomic=1 rows=a3 cols=max(a4,1)"},
    {.kernel = "EmbeddingBag_accGradParametersKernel_max",
     .op = "scatter dtype=T0 index=I atomic=1 rows=a4 cols=max(a3,1)"},
    // One thread per segment and column; how many segments there are is on the device.
    {.kernel = "sum_and_scatter",
     .op = "scatter dtype=T0 index=I cols=max(a2,1) rows=max(threads/cols,1)"},
    {.kernel = "EmbeddingBag_updateOutputKernel*",
     .op = "gather dtype=T0 index=I rows=a5 cols=max(a7,1)"},
    {.kernel = "_embedding_bag_per_sample_weights_backward_kernel",
     .op = "gather dtype=T0 index=I rows=a8 cols=max(a9,1)"},
};

}  // namespace

std::span<const Row> embedding_rows() { return embedding_table; }

Made prepare_embedding(const Kernel& kernel, const Name& name) {
  return from_rows(embedding_table, kernel, name);
}

}  // namespace maya::decode
