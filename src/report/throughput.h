// Tokens or samples of a step, read off the loss.
#pragma once

#include <optional>

#include "maya/report.h"

namespace maya::report {

// The rows of the loss are the samples (images) or tokens (text: more rows than sequences in
// attention, or a recurrent net). Ranks that reduce activations in the forward pass are tensor
// parallel and share their rows. Nothing when no rank computes a loss this can be read from.
std::optional<Throughput> throughput_from_loss(const job::Job& job, double step_ms);

}  // namespace maya::report
