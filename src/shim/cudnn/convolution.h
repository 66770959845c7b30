// A convolution as its three tensors and its parameters state it.
#pragma once

#include <optional>
#include <span>

#include "maya/op.h"
#include "shim/cudnn/tensor.h"

namespace maya::shim::cudnn {

// Parameters by spatial dimension, outermost first.
struct Steps {
  std::span<const std::int64_t> padding, stride, dilation;
};

// `x` is n×c×spatial, `w` k×(c/groups)×spatial; nullopt where they do not fit together.
std::optional<Convolution> convolution(const Tensor& x, std::span<const std::int64_t> w,
                                       const Steps& steps, DType type, bool tf32,
                                       Direction direction);

// Scratch memory of the usual kernel: tensor cores want channels last, other layouts are converted
// first.
std::size_t workspace(const Convolution& work);

}  // namespace maya::shim::cudnn
