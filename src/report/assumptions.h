// The assumptions about values and sizes that no recording can contain, and how much of the step
// depends on them.
#pragma once

#include <string>
#include <vector>

#include "report/usage.h"

namespace maya::report {

// The assumption about the work of one op; empty if there is none.
std::string assumption_about(const Op& op);

// Whether `assumptions_of` lists this warning of the recorder.
bool is_assumption(std::string_view warning);

// In descending order of their share; assumptions without a known share come last.
std::vector<Assumption> assumptions_of(const job::Job& job, const simulate::Timeline& timeline,
                                       const std::vector<OpUse>& uses);

}  // namespace maya::report
