// What was assumed about values and sizes that no recording can know, and how much of the step
// rests on it.
#pragma once

#include <string>
#include <vector>

#include "report/usage.h"

namespace maya::report {

// What is assumed about the work of one op; empty: nothing. The hook for ops that carry such a
// mark.
std::string assumption_about(const Op& op);

// A warning of the recorder that `assumptions_of` lists.
bool is_assumption(std::string_view warning);

// By descending share; those whose share is not known come last.
std::vector<Assumption> assumptions_of(const job::Job& job, const simulate::Timeline& timeline,
                                       const std::vector<OpUse>& uses);

}  // namespace maya::report
