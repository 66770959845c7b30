// Derives the number of tokens, images or samples of a step from its ops.
#pragma once

#include <optional>

#include "maya/report.h"

namespace maya::report {

// The unit is tokens if indices are looked up in a table and the model has an output for each row
// of it (a language model), images if the first convolution has images as input, and otherwise the
// rows of the loss. They are summed over the data-parallel ranks and the micro-batches of a step.
// nullopt if none of these is found; the user can set the number (--set tokens_per_step=…).
std::optional<Throughput> throughput_of(const job::Job& job, double step_ms);

}  // namespace maya::report
