// What a step's length hangs on: walked back from its end, each thing to what it had waited for
// last.
#pragma once

#include <memory>
#include <vector>

#include "simulate/engine.h"
#include "simulate/program.h"

namespace maya::simulate {

// `end_class`: the class whose step ends last. Links in time order.
std::vector<CriticalLink> critical_path(const Plan& plan,
                                        const std::vector<std::unique_ptr<Engine>>& engines,
                                        std::uint32_t end_class, std::int64_t start,
                                        std::int64_t end);

// 80 % interval of the step: errors of one family of ops are taken to go the same way, those of
// different families to be independent, and the board's own (Model::board_uncertainty) to lie on
// all. `path` may be empty: then all work of the job is weighed.
struct Interval {
  double low_ns{}, high_ns{};
  std::vector<FamilyTime> families;  // scaled to the step; largest first
};
Interval interval(const job::Job& job, const Plan& plan, const std::vector<CriticalLink>& path,
                  double step_ns);

}  // namespace maya::simulate
