// Recordings of ranks become one job: communicators matched, ranks folded into classes, steps
// found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/job.h"
#include "maya/result.h"
#include "maya/trace.h"

namespace maya::collate {

struct Options {
  bool fold{true};  // false: every rank is its own class
  // GPUs of a node of the cluster that will be simulated: communicators that spread differently
  // over nodes must not fold together. 0: placement does not matter (one node, or one rank).
  int gpus_per_node{0};
  // Steps, in place of finding them: how many there are, or the name of the annotated (NVTX) range
  // that opens each.
  std::uint32_t steps{0};
  std::string step_range;
  // For ranks without a recording: the recorded rank that stands for each rank of the job. Empty:
  // the one at the same place of the grid that communicators show, else the nearest recorded rank
  // below (pipeline stages are blocks of ranks).
  std::vector<std::int32_t> stand_in;
};

// Fails with a message that names rank, communicator, sequence number and op when the ranks' calls
// do not fit together, and when recordings of different jobs are mixed.
Result<job::Job> collate(std::vector<trace::Recording> recordings, const Options& options = {});

// The ranks that must be recorded for the job to be known, from what one of them did: those it
// exchanges messages with as stages of a pipeline do, and theirs. All others do what one of these
// does.
std::vector<std::int32_t> needed_ranks(const trace::Recording& recording);

// The steps seen so far in a recording that may still be growing.
struct SteadySteps {
  std::uint32_t count{};  // those that would be measured
  // By updates or annotations rather than by what merely repeats: a program that loads weights
  // repeats itself too, and so do the micro-batches of a step whose update is still to come.
  bool certain{};
};
SteadySteps steady_steps(trace::Recording recording);

// Ranks that were stopped in the middle of their work, each where it was: what lies behind the last
// step that all of them completed is left out. Nothing changes where no steps are found.
void cut_to_common_steps(std::vector<trace::Recording>& recordings);

}  // namespace maya::collate
