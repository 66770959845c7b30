// "What would help": the run simulated again with one thing changed.
#pragma once

#include <string>
#include <vector>

#include "predict/predict.h"

namespace maya::predict {

// Empty for a run without a step, and for one so large that simulating it several times would take
// longer than its user waits. Where it did not fit: the GPUs of the catalogue on which it would.
std::vector<report::WhatIf> what_would_help(const Run& run, const std::string& directory,
                                            const Options& options, const Outcome& outcome,
                                            Reuse& models);

}  // namespace maya::predict
