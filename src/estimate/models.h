// All models of one GPU with their parameters resolved: from op to estimate.
#pragma once

#include <array>

#include "estimate/attention_model.h"
#include "estimate/calibration.h"
#include "estimate/chip.h"
#include "estimate/conv_model.h"
#include "estimate/gemm_model.h"
#include "estimate/learned_model.h"
#include "estimate/memory_ops.h"
#include "estimate/model_file.h"
#include "estimate/quantization.h"
#include "estimate/spill_model.h"
#include "estimate/transfer_model.h"
#include "estimate/trees.h"
#include "maya/estimate.h"

namespace maya::estimate {

// 80 % of the measurements lie between low and high times the estimate. Short kernels scatter more:
// below `short_ns` another pair holds.
struct Confidence {
  double low{0.7}, high{1.4};
  double short_low{0.6}, short_high{1.6}, short_ns{20000};
  double scale{1};  // a user's calibration
  bool fitted{}, calibrated{};
};

Confidence read_confidence(const Section& section);
GemmShape gemm_shape(const Chip& chip, const Gemm& work);

class Models {
 public:
  static Result<Models> make(const Chip& chip, const ModelFile& file, LearnedModels learned = {});
  void calibrate(const Calibration& calibration);
  Estimate evaluate(const Op& op) const;
  const Chip& chip() const { return chip_; }

 private:
  Models() = default;
  struct Raw {
    double ns;
    const Confidence* confidence;
  };
  Raw raw(const Op& op) const;
  // From the tables of measured kernels, where they have such an op; false: they do not.
  bool learned(const Op& op, Estimate& out) const;
  Raw gemm(const Gemm& work) const;
  // A layer of experts where no table has such: only the weights of experts that are hit are read.
  Raw experts(const Op& op, const Gemm& work) const;
  // One of its products, launched by itself.
  Estimate experts_product(const Op& op, const Gemm& work) const;
  Raw conv(const Convolution& work) const;
  Raw attention(const Attention& work) const;
  // Prompts and tokens in one launch.
  Estimate mixed(const Op& op, const Attention& work) const;
  double tiles_of_tokens(const Op& op, const Attention& work) const;
  Raw rnn(const Rnn& work) const;
  Raw solver(const Solver& work) const;
  Raw triton(const Op& op, const TritonKernel& work) const;

  template <class P>
  struct Model {
    P params;
    Confidence confidence;
    Trees correction;
  };
  Chip chip_;
  LearnedModels learned_;
  Quantization quantization_;
  Confidence learned_products_, learned_attention_;  // only what a calibration says
  // Of learned models that were measured on another GPU: at least so wide.
  Confidence carried_products_, carried_attention_;
  Confidence experts_;
  double experts_efficiency_{1};
  Model<GemmParams> gemm_tensor_, gemm_plain_, gemm_batched_;
  Confidence gemm_thin_{0.6, 1.6, 0.5, 1.8, 20000, 1, false};      // products that only stream
  Model<ConvParams> conv_tensor_, conv_tensor_last_, conv_plain_;  // last: channels last
  Confidence conv_other_;  // of plain convolutions of another kind than those measured
  std::array<Model<AttentionParams>, 5> attention_;  // by AttentionKernel
  std::array<Model<MemoryParams>, static_cast<std::size_t>(MemoryFamily::count)> memory_;
  Model<TransferParams> transfer_;
  Model<SpillParams> spills_;
  Confidence unknown_{0.3, 3.0, 0.3, 3.0, 20000, 1, false};
};

}  // namespace maya::estimate
