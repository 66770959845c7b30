// Models learned from tables of measured kernels, files GPU.KIND.forest (products, attention, …) in
// catalog/models/learned, written by tools/fit/ops.py.
//
//   "MAYAFST1", then u32 the number of models, then for each:
//     text name; u8 libraries, each a text; u8 kernels, each a text (of attention: AttentionKernel;
//     of experts: what each library launches where nobody says, ExpertsKernel)
//     u8 features (the last is the library's number)
//     u8 steps, each f32 up to this duration (ns), f32 low, f32 high: the 80 % interval
//     per feature u8 count, f32 thresholds ascending
//     f32 scale of the leaves; u16 trees, each u16 splits and its nodes, parents before children,
//     left before right: u8 feature and u8 number of the threshold, or u8 255 and i16 leaf
//
// A text is u8 length and bytes; numbers are little-endian. The names of the files say which GPU
// (and, with what comes before '_', which architecture) they were measured on.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "estimate/question.h"
#include "maya/result.h"

namespace maya::estimate {

struct LearnedAnswer {
  double ns{}, low_ns{}, high_ns{};
};

class LearnedModel {
 public:
  // `library`: a name the model knows; others count as its first, today's PyTorch.
  LearnedAnswer answer(const Question& question, std::string_view library) const;
  bool knows(std::string_view library) const;
  // Whose rows answer where this library is asked for.
  std::string_view answering(std::string_view library) const;
  // Questions grow at their end: a file fitted before they did knows the first of the features.
  bool made_for(const Question& question) const {
    return features_ <= static_cast<std::size_t>(question.count) + 1;
  }
  // Its measurements are of this kind of kernel.
  bool covers(std::string_view kernel) const;

 private:
  friend class LearnedModels;
  struct Step {
    float until_ns, low, high;
  };
  std::vector<std::string> libraries_, kernels_;
  std::vector<Step> steps_;
  std::size_t features_{};
  Forest forest_;
};

class LearnedModels {
 public:
  static Result<LearnedModels> parse(std::string_view bytes, const std::string& origin);
  // The files of this GPU, else of its architecture, else what was learned over all of them
  // (`anything`); no models where there are none.
  static Result<LearnedModels> load(const std::string& directory, const Chip& chip, bool anything);

  const LearnedModel* find(Learned family) const {
    const auto& model = models_[static_cast<std::size_t>(family)];
    return model ? &*model : nullptr;
  }
  // Measured on this very GPU, not on a neighbour.
  bool own() const { return own_; }
  const std::string& source() const { return source_; }

 private:
  std::array<std::optional<LearnedModel>, static_cast<std::size_t>(Learned::count)> models_;
  bool own_{};
  std::string source_;  // the GPU of the file
};

}  // namespace maya::estimate
