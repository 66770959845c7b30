// Tables of products with 8- and 4-bit operands time a linear layer: its activations come in 16
// bits and are converted first. In a recording the conversion is a kernel of its own, so a recorded
// product is charged without it (catalog/models/fitted-quantization.model, tools/fit).
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "estimate/learned_model.h"
#include "estimate/model_file.h"
#include "maya/op.h"

namespace maya::estimate {

class Quantization {
 public:
  static Quantization make(const Chip& chip, const ModelFile& file);

  // The library whose table is asked for a recorded product. cuBLASLt's is TensorRT-LLM's: the
  // other libraries measured have kernels of their own.
  static std::string_view library_of(Learned family, std::string_view kernel);
  // What is left of a table's answer without the conversion: never less than the arithmetic and the
  // operands take.
  LearnedAnswer without(Learned family, std::string_view library, const Chip& chip,
                        const Gemm& work, LearnedAnswer whole) const;

 private:
  struct Cost {
    double constant_ns{}, bytes{};  // a launch, and for each element of the activations
  };
  std::map<std::string, Cost, std::less<>> costs_;  // "family.library"
};

}  // namespace maya::estimate
