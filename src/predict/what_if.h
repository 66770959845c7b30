// The report's section "What would help": simulates the run again with one change at a time.
#pragma once

#include <string>
#include <vector>

#include "predict/predict.h"

namespace maya::predict {

// The result is empty for a run without a step, and for a run that is too large to be simulated
// several times. If the run did not fit into memory, the result lists changes with
// which it would fit (fit.h).
std::vector<report::WhatIf> what_would_help(const Run& run, const std::string& directory,
                                            const Options& options, const Outcome& outcome,
                                            Reuse& models);

}  // namespace maya::predict
