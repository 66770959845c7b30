// What would make a run fit into the memory of its GPUs: a smaller micro-batch, recomputation,
// other GPUs. And whether a larger micro-batch would still fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predict/predict.h"

namespace maya::predict {

// The word of a command that is its micro-batch: "--batch-size 16" or "--batch-size=16".
struct BatchWord {
  std::size_t begin{}, end{};  // of the number, within the command
  int value{};

  std::string in(const std::string& command, int other) const;
};
std::optional<BatchWord> batch_word(const std::string& command);

// For a run that does not fit.
std::vector<report::WhatIf> what_would_fit(const Run& run, const std::string& directory,
                                           const Options& options, const Outcome& outcome,
                                           Reuse& models);

// Removes what was set for the GPU of the run: it does not hold for another one.
void without_gpu(std::vector<std::pair<std::string, std::string>>& settings);

// The memory of twice the micro-batch. Its time needs a run of its own. Null: not known.
std::optional<report::WhatIf> larger_batch(const Outcome& outcome);

}  // namespace maya::predict
