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
  // Host times were cleared of this machine's doing while the job ran, in virtual time
  // (session/settled_time.h): they are what the program saw.
  bool settled{false};
  // For ranks without a recording: the recorded rank that stands for each rank of the job. Empty:
  // the one at the same place of the grid that communicators show, else the nearest recorded rank
  // below (pipeline stages are blocks of ranks).
  std::vector<std::int32_t> stand_in;
};

// Fails with a message that names rank, communicator, sequence number and op when the ranks' calls
// do not fit together, and when recordings of different jobs are mixed.
Result<job::Job> collate(std::vector<trace::Recording> recordings, const Options& options = {});

// The ranks that must be recorded for the job to be known, from what one of them did. One alone,
// unless it is a stage of a pipeline: then one of each stage, or of a long pipeline the first, the
// last and three between them, from which collate() works out the others. All other ranks do what
// one of these does.
std::vector<std::int32_t> needed_ranks(const trace::Recording& recording);

// The stages of a pipeline that a rank, whose recording may have only begun, has sent to and
// received from; empty while it has not.
std::vector<std::int32_t> stages_both_ways(const trace::Recording& recording);

// Further ranks to record, when stages of a pipeline turn out to differ by more than the order of
// their work. None: all that was left out can be worked out from `recordings` (ascending ranks).
struct MoreRanks {
  std::vector<std::int32_t> ranks;
  std::string why;
};
MoreRanks more_ranks(const std::vector<trace::Recording>& recordings);

// The steps seen so far in a recording that may still be growing.
struct SteadySteps {
  std::uint32_t count{};  // those that would be measured
  // By updates or annotations rather than by what merely repeats: a program that loads weights
  // repeats itself too, and so do the micro-batches of a step whose update is still to come.
  bool certain{};
  bool matrix_work{};  // products, convolutions, attention: not only loading or filling weights
};
SteadySteps steady_steps(trace::Recording recording);

// Ranks that were stopped in the middle of their work, each where it was: what lies behind the last
// step that all of them completed is left out. Nothing changes where no steps are found.
void cut_to_common_steps(std::vector<trace::Recording>& recordings);

// How far the training of a rank had come at some point of its recording.
enum class Phase : std::uint8_t { nothing, loading, forward, backward, optimizer };
struct Progress {
  Phase phase{Phase::nothing};
  std::uint32_t steps{};  // whole training steps before it
  bool first{true};       // no earlier forward pass was seen
};
// "in the first forward pass", "in the optimizer update of step 4"
std::string words(const Progress& progress);

// What is known of the training of recordings that may have ended anywhere (a crash, a Ctrl-C, out
// of memory). A whole step has a forward pass, a backward pass and an update; what merely repeats
// (layers, weights that are loaded) is none.
class Training {
 public:
  explicit Training(const std::vector<trace::Recording>& recordings);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Whole steps that every rank completed.
  std::uint32_t common_steps() const { return common_steps_; }
  // Where recording `index` was when it issued `record`; by default at its end.
  Progress at(std::size_t index, std::uint32_t record = UINT32_MAX) const;
  // First record behind the common steps of recording `index`.
  std::uint32_t end_of_common_steps(std::size_t index) const;

 private:
  struct Rank;
  std::vector<Rank> ranks_;
  std::uint32_t common_steps_{};
};

}  // namespace maya::collate
