// Negative log likelihood: the pick of the target after a log-softmax.
#include "decode/table.h"

namespace maya::decode {
namespace {

// Backward, the gradient was cleared before: one element per row is stored.
constexpr Row loss_table[] = {
    // (…, rows, classes)
    {.kernel = "nll_loss*",
     .when = "has:backward has:no_reduce",
     .op = "scatter dtype=T0 cols=1 rows=i0 table_rows=i1"},
    {.kernel = "nll_loss*",
     .when = "has:no_reduce",
     .op = "cross_entropy dtype=T0 rows=i0 cols=i1"},
    {.kernel = "nll_loss2d_forward_size_average_kernel",
     .op = "cross_entropy dtype=T0 rows=1 cols=1"},
    // (…, classes, map elements, blocks per sample, ignore)
    {.kernel = "nll_loss2d*",
     .when = "has:backward",
     .op = "scatter dtype=T0 cols=1 rows=i1*max(grid/max(i2,1),1) table_rows=i0"},
    {.kernel = "nll_loss2d*", .op = "cross_entropy dtype=T0 rows=i1*max(grid/max(i2,1),1) cols=i0"},
    // One row
    {.kernel = "nll_loss*_1d",
     .when = "has:backward",
     .op = "scatter dtype=T0 cols=1 rows=1 table_rows=i0"},
    {.kernel = "nll_loss*_1d", .op = "cross_entropy dtype=T0 rows=1 cols=i0"},
    {.kernel = "nll_loss*",
     .when = "has:backward",
     .op = "scatter dtype=T0 cols=1 rows=i0 table_rows=i1"},
    {.kernel = "nll_loss*", .op = "cross_entropy dtype=T0 rows=i0 cols=i1"},
};

}  // namespace

std::span<const Row> loss_rows() { return loss_table; }

Made prepare_loss(const Kernel& kernel, const Name& name) {
  return from_rows(loss_table, kernel, name);
}

}  // namespace maya::decode
