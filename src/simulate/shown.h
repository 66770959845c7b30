// Selects the spans of a large job that are kept for viewers. A timeline of 64 stages with hundreds
// of micro-batches has tens of millions of spans: more than a viewer can open, and minutes to
// write. If there are more than Options::most_spans, only the measured steps of some classes are
// kept. These classes are spread evenly over the job and include the first and the last one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/simulate.h"
#include "simulate/program.h"

namespace maya::simulate {

struct Shown {
  std::vector<std::uint8_t> classes;  // 1: shown
  bool measured_steps_only{};

  bool all() const { return !measured_steps_only; }
  // A sentence for the user; empty when everything is shown.
  std::string note() const;
};

Shown choose_shown(const job::Job& job, const Plan& plan, const Options& options);

// Removes the spans that were issued outside the measured steps.
void keep_measured_steps(const job::Job& job, Timeline& timeline);

}  // namespace maya::simulate
