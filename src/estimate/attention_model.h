// Time of a fused attention kernel (FlashAttention and its kin).
//
//   Blocks of query rows go over the SMs in waves; each walks the keys it may see. The rate is the
//   tensor-core peak times an efficiency of the kernel generation and head size; short sequences
//   pay the start of each block, causal masks the diagonal blocks that are half empty.
//
//   A token that looks back on a context (decoding) has one row of queries a head. Its kernels take
//   the heads that share keys as rows of one block and split the context over the SMs, so that the
//   keys are read once, by all of them: what counts is the memory's bandwidth.
#pragma once

#include "estimate/chip.h"
#include "maya/op.h"

namespace maya::estimate {

struct AttentionParams {
  double floor_ns{5000};
  double forward{0.55};  // of peak, head size 128, long sequences
  double backward{0.45};
  double head64{0.90};   // factor at head size 64
  double head256{0.95};  // factor at head size 256
  double causal{0.93};   // factor of a long causal kernel
  double block_q{128}, block_k{96};
  double start{150};  // keys' worth of time a block spends before and after its loop
  double start_backward{200};
  double per_sm{1};  // blocks an SM runs at once
  double tail{0.8};  // cost of a partly filled wave
  double mask{0.5};  // share of a diagonal block that is wasted
  double dropout{0.8};
  double dram_efficiency{0.8};
  double decode_rows{64};    // of a decoding kernel's block
  double decode_dram{0.75};  // share of the bandwidth that it reaches
  double decode_start_ns{3000};
  double sustained{1};
  template <class S, class F>
  static void each(S& s, F&& f) {
    f("floor_ns", s.floor_ns), f("forward", s.forward), f("backward", s.backward);
    f("head64", s.head64), f("head256", s.head256), f("causal", s.causal);
    f("block_q", s.block_q), f("block_k", s.block_k), f("start", s.start);
    f("start_backward", s.start_backward), f("per_sm", s.per_sm), f("tail", s.tail);
    f("mask", s.mask), f("dropout", s.dropout), f("dram_efficiency", s.dram_efficiency);
    f("sustained", s.sustained), f("decode_rows", s.decode_rows);
    f("decode_dram", s.decode_dram), f("decode_start_ns", s.decode_start_ns);
  }
};

// A few tokens look back on a longer context.
bool is_decoding(const Attention& work);

double attention_time(const Chip& chip, const Attention& work, const AttentionParams& params);

}  // namespace maya::estimate
