// Time of a convolution: an implicit matrix product with the efficiency of its direction, or, for
// depthwise and nearly depthwise ones, a kernel that moves data. Tensor-core kernels want channels
// last: other layouts pay the conversions. Plain f32 convolutions without stride may take one of
// Winograd's short cuts; the library picks what is fastest, so the model takes the least:
//
//   fused      outputs in tiles of 2×2, 16 products for the 36 of the direct way, one kernel
//   in stages  tiles of 4×4: inputs and weights are transformed to memory, a batched product (one
//              per point of the transformed tile), the outputs are transformed back
#pragma once

#include "estimate/gemm_model.h"
#include "estimate/memory_model.h"
#include "maya/op.h"

namespace maya::estimate {

struct ConvParams {
  double forward{0.85};  // of the matching GEMM's rate
  double data_gradient{0.80};
  double weight_gradient{0.70};
  double pointwise{1.0};         // 1×1, against the above
  double fused{0.7};             // of the GEMM's rate, Winograd in one kernel (0: never)
  double staged{0.9};            // of the batched GEMM's rate, Winograd in stages (0: never)
  double stages{0.8};            // of a plain stream's rate, its transforms
  double transform{1.0};         // of DRAM bandwidth, layout conversions (0: none are made)
  double unaligned{0.5};         // rate with channels that are no multiple of 8 (tensor cores)
  double grouped{0.5};           // rate of grouped convolutions against one group's GEMM batched
  double grouped_last{0.5};      // the same, tensor cores and channels last
  double grouped_slow{0.5};      // the same, few groups or wide ones, which cuDNN has no kernel for
  double depthwise{0.55};        // of DRAM bandwidth
  double depthwise_flops{0.25};  // of the plain f32 rate
  double depthwise_weight{0.35};  // of the above, weight gradient
  double depthwise_first{1};      // the same with channels first, against channels last
  double depthwise_wide{1};       // of the above, channels last and a kernel wider than 5
  double strided_data{0.8};       // data gradient of a strided convolution
  double sm_flops{1e9};           // 16-bit FLOPs an SM does at most per clock in such kernels
  double hide{1};                 // as GemmParams has it, plain f32
  double floor_ns{4000};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("forward", s.forward), f("data_gradient", s.data_gradient);
    f("weight_gradient", s.weight_gradient), f("pointwise", s.pointwise);
    f("fused", s.fused), f("staged", s.staged), f("stages", s.stages);
    f("transform", s.transform), f("unaligned", s.unaligned);
    f("grouped", s.grouped), f("grouped_last", s.grouped_last), f("grouped_slow", s.grouped_slow),
        f("depthwise", s.depthwise);
    f("depthwise_flops", s.depthwise_flops), f("depthwise_weight", s.depthwise_weight);
    f("depthwise_first", s.depthwise_first), f("depthwise_wide", s.depthwise_wide),
        f("strided_data", s.strided_data), f("sm_flops", s.sm_flops), f("hide", s.hide);
    f("floor_ns", s.floor_ns);
  }
};

struct ConvDetail {
  double ns{};
  GemmDetail gemm;
  double direct_ns{}, fused_ns{}, staged_ns{};  // 0: not possible
};

ConvDetail conv_time(const Chip& chip, const Convolution& work, const ConvParams& params,
                     const GemmParams& gemm, const MemoryParams& memory);

}  // namespace maya::estimate
