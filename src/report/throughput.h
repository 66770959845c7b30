// How much a step trains on, read off what enters it.
#pragma once

#include <optional>

#include "maya/report.h"

namespace maya::report {

// Tokens where indices are looked up in a table and the model has an output for each row of it (a
// language model); images where the first convolution takes pictures; else the rows of the loss.
// Counted over the data-parallel ranks and the micro-batches of a step. Nothing where none of it is
// seen: the user can say it (--set tokens_per_step=…).
std::optional<Throughput> throughput_of(const job::Job& job, double step_ms);

}  // namespace maya::report
