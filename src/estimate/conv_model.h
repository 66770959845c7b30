// Time of a convolution: an implicit matrix product with the efficiency of its direction, or, for
// depthwise and nearly depthwise ones, a kernel that moves data. The library picks what is fastest
// of what it has, so the model takes the least of:
//
//   tensor     tensor cores. They want channels last: other layouts pay conversions. Channels come
//              in slices (of the sum, for each tap of the kernel) and in tiles (of the output, for
//              each group): a first layer of three channels or narrow groups do mostly padding
//   plain      the same product at the plain f32 rate
//   fused      Winograd's short cut, outputs in tiles of 2×2, 16 products for the 36 of the direct
//              way, one kernel; plain arithmetic and no stride only, as the next
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
  double pointwise{1.0};          // 1×1, against the above
  double fused{0.7};              // of the GEMM's rate, Winograd in one kernel (0: never)
  double staged{0.9};             // of the batched GEMM's rate, Winograd in stages (0: never)
  double stages{0.8};             // of a plain stream's rate, its transforms
  double transform{1.0};          // of DRAM bandwidth, layout conversions (0: none are made)
  double transform_output{1};     // share of the output that is converted by a kernel of its own
  double transform_pointwise{1};  // the same of all operands of a 1×1 convolution, forward and data
  double channel_slice{8};        // channels of the sum are padded to this for each tap
  double channel_tile{8};         // channels of the output are padded to this in each group
  double weight_tile{0};          // weight gradient: both are padded to this (0: to eight)
  double weight_partial{0};       // bytes a weight its partial sums pass through memory
  double split{32};               // most parts of a sum over channels and taps
  double tiles{0};                // as GemmParams has it, tensor cores (0: those of the products)
  double unaligned{0.5};          // rate with channels that are no multiple of 8 (tensor cores)
  double grouped{0.5};            // rate of grouped convolutions against one group's GEMM batched
  double grouped_last{0.5};       // the same, tensor cores and channels last
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
    f("transform", s.transform), f("transform_output", s.transform_output);
    f("transform_pointwise", s.transform_pointwise), f("channel_slice", s.channel_slice);
    f("channel_tile", s.channel_tile), f("weight_tile", s.weight_tile);
    f("weight_partial", s.weight_partial), f("split", s.split), f("tiles", s.tiles);
    f("unaligned", s.unaligned);
    f("grouped", s.grouped), f("grouped_last", s.grouped_last), f("grouped_slow", s.grouped_slow),
        f("depthwise", s.depthwise);
    f("depthwise_flops", s.depthwise_flops), f("depthwise_weight", s.depthwise_weight);
    f("depthwise_first", s.depthwise_first), f("depthwise_wide", s.depthwise_wide),
        f("strided_data", s.strided_data), f("sm_flops", s.sm_flops), f("hide", s.hide);
    f("floor_ns", s.floor_ns);
  }
};

// So few channels a group that a kernel of its own moves data rather than multiplies.
bool depthwise(const Convolution& work);

struct ConvDetail {
  double ns{};
  GemmDetail gemm;
  double direct_ns{}, fused_ns{}, staged_ns{};  // 0: not possible
};

ConvDetail conv_time(const Chip& chip, const Convolution& work, const ConvParams& params,
                     const GemmParams& gemm, const MemoryParams& memory);

}  // namespace maya::estimate
