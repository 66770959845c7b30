// The communication of a step by communicator: sizes, counts, bandwidth, the part that is hidden by
// kernels, and the ranks that the members wait for. Also the schedule of a pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/job.h"
#include "maya/simulate.h"

namespace maya::report {

// Per step, as a mean over the members. Times are in ms.
struct CallCost {
  std::string kind;      // "all_reduce", "send", "receive"
  std::int64_t bytes{};  // of one call, as nccl-tests defines the size
  double count{}, ms{}, exposed_ms{}, waiting_ms{};
  double busbw_gbps{};  // bus bandwidth while data is transferred
};

struct CommunicatorCost {
  std::string name;
  std::int32_t size{};
  std::vector<std::int32_t> ranks;  // members of the first communicator of this kind
  std::int32_t alike{1};            // number of communicators of the job that do the same
  std::vector<CallCost> calls;      // by descending time
  double ms{}, exposed_ms{}, waiting_ms{};
  std::string last;  // the ranks that arrive last, if members wait for each other
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
// Empty if the job has no pipeline.
std::vector<StageSchedule> pipeline_schedule(const job::Job& job,
                                             const simulate::Timeline& timeline);

}  // namespace maya::report
