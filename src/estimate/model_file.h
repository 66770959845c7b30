// catalog/models/*.model: the parameters of the models, as text.
//
//   maya-model 1
//   [gemm.tensor]            defaults of a family: first principles
//   floor_ns 2200
//   [gemm.tensor ampere-8.0] fitted for an architecture; "ampere" and a GPU's name work too
//   source gemm_fp16 a100
//   mma_efficiency 0.93
//
// A GPU gets the family's defaults, then what its family of architectures says, then its exact
// architecture, then its own name. A section with a `source` line makes the answer "fitted".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/chip.h"
#include "maya/result.h"

namespace maya::estimate {

class Section {
 public:
  double get(std::string_view key, double fallback) const;
  const std::vector<double>* list(std::string_view key) const;
  bool fitted() const { return fitted_; }

 private:
  friend class ModelFile;
  std::map<std::string, std::vector<double>, std::less<>> values_;
  bool fitted_{};
};

class ModelFile {
 public:
  // Every *.model file of the folder, in the order of their names.
  static Result<ModelFile> load(const std::string& directory);
  static Result<ModelFile> parse(std::string_view text, const std::string& origin);
  Status merge(std::string_view text, const std::string& origin);

  Section section(std::string_view family, const Chip& chip) const;

 private:
  std::map<std::string, Section, std::less<>> sections_;  // "family" or "family scope"
};

// Fills a parameter struct that lists its doubles through `each(self, f(name, value))`.
template <class P>
P read_params(const Section& section) {
  P p;
  P::each(p, [&](std::string_view name, double& value) { value = section.get(name, value); });
  return p;
}

}  // namespace maya::estimate
