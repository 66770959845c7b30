// Layer, RMS, group and batch normalization of ATen, forward and backward, as rows.
#include <algorithm>
#include <cstdlib>

#include "decode/operands.h"
#include "decode/table.h"

namespace maya::decode {
namespace {

constexpr Row norm_table[] = {
    // Batch norm: tensors are accessors of image, channel and the rest.
    {.kernel = "batch_norm_backward_kernel",
     .op = "normalization kind=batch direction=backward dtype=T0 rows=s0.1 cols=s0.0*s0.2"},
    {.kernel = "batch_norm_collect_statistics_kernel",
     .op = "reduction in=T1 kind=other outputs=s0.1*2 inputs=s0.0*s0.1*s0.2"},
    {.kernel = "batch_norm_backward_reduce_kernel",
     .op = "reduction in=T0 kind=other outputs=s0.1*2 inputs=s0.0*s0.1*s0.2*2"},
    {.kernel = "batch_norm_backward_elemt_kernel",
     .op = "pointwise dtype=T0 elements=s0.0*s0.1*s0.2 inputs=2 bytes_read=elements*2*size(T0) "
           "bytes_written=elements*size(T0) flops_per_element=6 strided=1"},
    {.kernel = "batch_norm_transform_input_kernel",
     .op = "pointwise dtype=T0 elements=s0.0*s0.1*s0.2 bytes_read=elements*size(T0) "
           "bytes_written=elements*size(T0) flops_per_element=6 strided=1"},
    {.kernel = "batch_norm_reduce_statistics_kernel",
     .op = "reduction kind=other outputs=grid*block inputs=outputs*8"},

    // <T, T_acc, rms>(int N, eps, X, gamma, beta, mean, rstd, Y): one block per row
    {.kernel = "vectorized_layer_norm_kernel",
     .when = "t2",
     .op = "normalization kind=rms dtype=T0 rows=grid cols=a0"},
    {.kernel = "vectorized_layer_norm_kernel",
     .op = "normalization kind=layer dtype=T0 rows=grid cols=a0"},
    // <T, T_acc, rms>(dY, X, mean, rstd, gamma, dX, int N): the input's gradient only
    {.kernel = "layer_norm_grad_input_kernel|layer_norm_grad_input_kernel_vectorized",
     .when = "t2",
     .op = "normalization kind=rms direction=backward dtype=T0 rows=grid cols=a-1"},
    {.kernel = "layer_norm_grad_input_kernel|layer_norm_grad_input_kernel_vectorized",
     .op = "normalization kind=layer direction=backward dtype=T0 rows=grid cols=a-1"},
    // (int64 M, int64 N, dY, X, mean, rstd, dgamma, dbeta): columns summed over rows
    {.kernel = "GammaBetaBackwardCUDAKernelTemplate*|GammaBetaBackwardSimpleCUDAKernel|"
               "GammaBetaBackwardCUDAKernel_32x32|GammaBetaBackwardCUDAKernel",
     .op = "normalization kind=weight_reduction direction=backward dtype=T0 rows=a0 cols=a1"},
    // ([int64 M,] int64 N, eps, X, …): one block per row
    {.kernel = "RowwiseMomentsContiguousCUDAKernel",
     .when = "p1=long",
     .op = "reduction in=T1 kind=other outputs=grid*2 inputs=grid*a1"},
    {.kernel = "RowwiseMomentsContiguousCUDAKernel",
     .op = "reduction in=T1 kind=other outputs=grid*2 inputs=grid*a0"},
    {.kernel = "RowwiseMomentsCUDAKernel",
     .when = "p1=long",
     .op = "reduction in=T0 kind=other outputs=grid*2 inputs=grid*a1"},
    {.kernel = "RowwiseMomentsCUDAKernel",
     .op = "reduction in=T0 kind=other outputs=grid*2 inputs=grid*a0"},
    // (N, C, HxW, G, eps, X, …)
    {.kernel = "RowwiseMomentsChannelsLast*",
     .when = "has:SmallD",
     .op = "reduction in=T1 kind=other inner=0 inputs=a0*a1*a2 outputs=a0*a3*2"},
    {.kernel = "RowwiseMomentsChannelsLast*",
     .op = "reduction in=T0 kind=other inner=0 inputs=a0*a1*a2 outputs=a0*a3*2"},
    {.kernel = "LayerNormForwardCUDAKernel",
     .op = "pointwise dtype=T0 elements=grid*a0 bytes_read=elements*size(T0) "
           "bytes_written=elements*size(T0) flops_per_element=4"},
    // Forward (N, C, group, …); backward (C, HxW, group, …) or 1d (C, group, …), images in the grid
    {.kernel = "ComputeFusedParamsCUDAKernel",
     .op = "pointwise dtype=T0 elements=a0*a1 inputs=2 outputs=2 bytes_read=elements*2*size(T0) "
           "bytes_written=elements*2*size(T0) flops_per_element=4"},
    {.kernel = "ComputeBackwardFusedParamsCUDAKernel|Compute1dBackwardFusedParamsCUDAKernel",
     .op = "pointwise dtype=T0 elements=grid*a0 inputs=2 outputs=2 bytes_read=elements*2*size(T0) "
           "bytes_written=elements*2*size(T0) flops_per_element=4"},
    // Group norm (N, C, group, …): ds and db of N×C summed over N
    {.kernel = "GammaBeta1dBackwardCUDAKernel*|GammaBetaBackwardCUDAKernel*",
     .op = "pointwise elements=a0*a1 inputs=2 bytes_read=elements*8 flops_per_element=4"},
    {.kernel = "ComputeInternalGradientsContiguousCUDAKernel",
     .op = "reduction in=T1:T0 kind=other outputs=grid*2 inputs=grid*a0*2"},
    {.kernel = "GroupNormBackwardChannelsLastCUDAKernel",
     .op = "pointwise dtype=T1:T0 elements=a0 inputs=2 bytes_read=elements*2*size(T1:T0) "
           "bytes_written=elements*size(T1:T0) flops_per_element=4"},
    // (…, int): rows in the grid; else rows and all elements
    {.kernel = "weight_norm_*",
     .when = "has:bwd has:first_dim",
     .op = "normalization kind=l2 direction=backward dtype=T0 rows=grid cols=i0"},
    {.kernel = "weight_norm_*",
     .when = "has:first_dim",
     .op = "normalization kind=l2 dtype=T0 rows=grid cols=i0"},
    {.kernel = "weight_norm_*",
     .when = "has:bwd",
     .op = "normalization kind=l2 direction=backward dtype=T0 rows=i0 cols=i1/max(rows,1)"},
    {.kernel = "weight_norm_*", .op = "normalization kind=l2 dtype=T0 rows=i0 cols=i1/max(rows,1)"},
};

// The last two ints are reduction size and stride (channels); the elementwise ones put a bool
// behind.
constexpr Row channels_last_table[] = {
    {.kernel = "*collect_statistics*",
     .op = "reduction in=P0 kind=other inner=0 outputs=i-1*2 inputs=i-2*i-1"},
    {.kernel = "*backward_reduce*",
     .op = "reduction in=P0 kind=other inner=0 outputs=i-1*2 inputs=i-2*i-1*2"},
    {.kernel = "*backward*",
     .op = "pointwise dtype=P0 elements=i-2*i-1 inputs=2 bytes_read=elements*2*size(P0) "
           "bytes_written=elements*size(P0) flops_per_element=6"},
    {.kernel = "*",
     .op = "pointwise dtype=P0 elements=i-2*i-1 bytes_read=elements*size(P0) "
           "bytes_written=elements*size(P0) flops_per_element=6"},
};

// Group norm's sums for the gradients: (HxW, …), a block per image and channel; channels last
// (C, HxW, …), a block per image and tile of channels, where the fallback's tile is one.
Made internal_gradients(const Kernel& kernel, const Name& name) {
  DType type = template_dtype(name, 0, DType::f32);
  if (type == DType::f32) type = template_dtype(name, 1, type);
  const bool last = name.parameters.size() >= 2 && name.parameters[1] == "long";
  std::int64_t tile = 1;
  if (!contains(name.leaf, "Fallback") && !name.templates.empty())
    tile = std::max(1, std::atoi(name.templates[0].c_str()));
  return make(scalars(kernel, name), [=](const Arguments& a, Decoded& d) {
    Reduction work;
    work.in = type;
    work.kind = ReduceKind::other;
    work.inner = !last;
    std::int64_t blocks = static_cast<std::int64_t>(a.grid(0)), each = a.integer(0);
    if (last) {
      const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(a.integer(0), tile));
      const auto all = static_cast<std::int64_t>(a.geometry().blocks());
      blocks = std::max<std::int64_t>(1, all / tiles) * a.integer(0);
      each = a.integer(1);
    }
    work.outputs = blocks * 2;
    work.inputs = blocks * each * 2;
    d.op.work = work;
  });
}

}  // namespace

std::span<const Row> norm_rows() { return norm_table; }
std::span<const Row> channels_last_rows() { return channels_last_table; }

Made prepare_norm(const Kernel& kernel, const Name& name) {
  if (starts_with(name.leaf, "batch_norm_") && contains(name.leaf, "channels_last"))
    return Signature(kernel, name).integers().size() < 2
               ? nullptr
               : from_rows(channels_last_table, kernel, name);
  if (Made made = from_rows(norm_table, kernel, name)) return made;
  return starts_with(name.leaf, "ComputeInternalGradients") ? internal_gradients(kernel, name)
                                                            : nullptr;
}

}  // namespace maya::decode
