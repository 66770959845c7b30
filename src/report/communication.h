// Communication of a step by communicator: what is sent how often, how fast, how much of it is
// hidden behind kernels, and whom the members wait for. And the schedule of a pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/job.h"
#include "maya/simulate.h"

namespace maya::report {

// Per step of the mean member. Times in ms.
struct CallCost {
  std::string kind;      // "all_reduce", "send", "receive"
  std::int64_t bytes{};  // of one call, as nccl-tests counts
  double count{}, ms{}, exposed_ms{}, waiting_ms{};
  double busbw_gbps{};  // while data flows
};

struct CommunicatorCost {
  std::string name;
  std::int32_t size{};
  std::vector<std::int32_t> ranks;  // members of the first communicator of this kind
  std::int32_t alike{1};            // communicators of the job that do the same
  std::vector<CallCost> calls;      // by descending time
  double ms{}, exposed_ms{}, waiting_ms{};
  std::string last;  // ranks that arrive last where members wait for each other; empty: nobody
};

std::vector<CommunicatorCost> communicator_costs(const job::Job& job,
                                                 const simulate::Timeline& timeline);

// One stage of a pipeline in the first measured step.
struct StageSchedule {
  std::vector<std::int32_t> ranks;
  struct Piece {
    double start_us{}, us{};
    char pass{};  // 'f' forward, 'b' backward, 'u' update
  };
  std::vector<Piece> pieces;
  double busy{};  // share of the step
};
// Empty where the job is no pipeline.
std::vector<StageSchedule> pipeline_schedule(const job::Job& job,
                                             const simulate::Timeline& timeline);

}  // namespace maya::report
