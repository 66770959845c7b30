// A whole job: rank classes, matched communicators, found steps. What collate makes and the simulator
// runs. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/trace.h"

namespace maya::job {

// Ranks whose op streams are equal share one class: the recording of its first member stands for all.
struct RankClass {
  std::vector<std::int32_t> ranks;     // members, ascending; ranks[0] is the representative
  trace::Recording recording;          // of the representative
  std::vector<std::uint32_t> step_begin;   // record index at which each found step begins; last = end
};

// One communicator of the job with all its members.
struct Communicator {
  std::uint64_t id{};
  std::vector<std::int32_t> ranks;     // job ranks in communicator order
  std::string name;
};

enum class StepsFoundBy : std::uint8_t { annotation, optimizer, period, user, whole_run };

struct Job {
  std::int32_t world_size{1};
  std::vector<RankClass> classes;
  std::vector<std::uint32_t> class_of_rank;
  std::vector<Communicator> communicators;
  StepsFoundBy found_by{StepsFoundBy::whole_run};
  std::uint32_t warmup_steps{};            // excluded from the answer
  std::vector<std::string> notes;          // what a user should know (missing ranks, one step only …)
};

}  // namespace maya::job
