// Finds the critical path of a step: goes back from its end, from each item to the one it waited
// for last.
#pragma once

#include <memory>
#include <vector>

#include "simulate/engine.h"
#include "simulate/program.h"

namespace maya::simulate {

// `end_class` is the class whose step ends last. The links are in order of time.
std::vector<CriticalLink> critical_path(const Plan& plan,
                                        const std::vector<std::unique_ptr<Engine>>& engines,
                                        std::uint32_t end_class, std::int64_t start,
                                        std::int64_t end);

// The 80 % interval of the step. Errors of one family of ops are assumed to have the same sign,
// errors of different families to be independent, and the error of the board
// (Model::board_uncertainty) to be common to all. If `path` is empty, all work of the job is used.
struct Interval {
  double low_ns{}, high_ns{};
  std::vector<FamilyTime> families;  // scaled to the step; largest first
};
Interval interval(const job::Job& job, const Plan& plan, const std::vector<CriticalLink>& path,
                  double step_ns);

}  // namespace maya::simulate
