// One product of a layer of experts, launched by itself, in terms of the whole layer.
//
// The tables time layers: both products and the small kernels around them. Engines launch the
// kernels one by one, and the small ones are priced by themselves. So a product is its share of
// the layer's time, by weights, after the small kernels are taken off.
#pragma once

#include <vector>

#include "maya/op.h"

namespace maya::estimate {

struct ExpertsLayer {
  Op layer;                // as `maya estimate moe` describes it
  std::vector<Op> around;  // its activation, sums over a token's experts, sorting, quantization
  double share{};          // of the product in the layer's weights
};

// Of a product whose part is unknown: of the layer whose first product it would be.
ExpertsLayer layer_of(const Op& op, const Gemm& product);

}  // namespace maya::estimate
