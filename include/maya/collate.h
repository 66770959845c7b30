// Turns the recordings of single ranks into one job::Job. collate() matches the communicators of
// the ranks, folds ranks with identical work into classes, derives the ranks that were not
// recorded, and detects the training steps.
//
//   auto job = collate::collate(std::move(recordings), {.gpus_per_node = 8});
//   if (!job) return job.error();
//
// All functions are pure and may be called from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "maya/job.h"
#include "maya/result.h"
#include "maya/trace.h"

namespace maya::collate {

struct Options {
  bool fold{true};  // false: every rank is its own class
  // GPUs per node of the cluster that will be simulated. Ranks are not folded together if their
  // communicators are distributed differently over nodes. 0: placement does not matter (one node).
  int gpus_per_node{0};
  // Override the detection of steps: the number of steps, or the name of the NVTX range that
  // encloses each step.
  std::uint32_t steps{0};
  std::string step_range;
  // The recordings were cut behind their last whole step: an update at the end is complete.
  bool whole_steps{false};
  // The recorded host times are those that the program's virtual clock counted
  // (session/settled_time.h). Disturbances by this machine have been removed already.
  bool settled{false};
  // For each rank of the job, the recorded rank whose recording it uses. If empty, collate()
  // chooses: the recorded rank with the same coordinates in the process grid (collate/grid.h),
  // else the nearest recorded rank below, because pipeline stages are blocks of ranks.
  std::vector<std::int32_t> stand_in;
};

// Fails if the calls of the ranks contradict each other (the message names rank, communicator,
// sequence number and op) or if the recordings belong to different jobs.
Result<job::Job> collate(std::vector<trace::Recording> recordings, const Options& options = {});

// The ranks that have to be recorded so that the whole job can be predicted, derived from the
// recording of one rank. Without a pipeline this is that one rank. With a pipeline it is one rank
// of each stage; for a long pipeline the first stage, the last stage and three stages between them,
// from which collate() derives the others. Every other rank does the same work as one of these.
std::vector<std::int32_t> needed_ranks(const trace::Recording& recording);

// The ranks of the pipeline that this rank is a stage of, once it has both sent a message to a peer
// and received one from it; empty before that. The recording may be incomplete.
std::vector<std::int32_t> stages_both_ways(const trace::Recording& recording);

// Further ranks that have to be recorded because pipeline stages differ by more than the order of
// their work. `ranks` is empty if every missing rank can be derived from `recordings`, which are in
// ascending order of rank.
struct MoreRanks {
  std::vector<std::int32_t> ranks;
  std::string why;
};
MoreRanks more_ranks(const std::vector<trace::Recording>& recordings);

// What rank b does differently from rank a in a steady step, in words ("3.1 % more FLOPs, for
// example in gemm (…)"). Empty if they do the same work, nullopt if one of them has no steady step.
// Kernels, collectives and messages count, if they differ by more than 1 % of the FLOPs or of the
// memory traffic. Copies and host work do not: in most programs one rank reads the loss and prints
// it. A step that rank a also did, though not as its last, is no difference.
std::optional<std::string> difference(trace::Recording a, trace::Recording b);

// The steady steps of a recording that may still be growing.
struct SteadySteps {
  std::uint32_t count{};  // steps that a prediction would measure
  // The steps were detected by optimizer updates or annotations. If false they were detected by
  // repetition alone, which may be wrong: loading weights and the micro-batches of one long step
  // repeat too.
  bool certain{};
  bool matrix_work{};  // matrix products, convolutions or attention were recorded
};
SteadySteps steady_steps(trace::Recording recording);

// For ranks that were stopped at different places of their work: removes everything after the last
// step that all of them completed. If no steps are detected the recordings are not changed.
void cut_to_common_steps(std::vector<trace::Recording>& recordings);

// How far the training of a rank had progressed at some record.
enum class Phase : std::uint8_t { nothing, loading, forward, backward, optimizer };
struct Progress {
  Phase phase{Phase::nothing};
  std::uint32_t steps{};  // training steps completed before
  bool first{true};       // this is the first forward pass
};
// "in the first forward pass", "in the optimizer update of step 4"
std::string words(const Progress& progress);

// The training progress of recordings that may have ended anywhere (a crash, Ctrl-C, out of
// memory). A step counts as complete if it has a forward pass, a backward pass and an optimizer
// update. Repetition alone is not counted here: layers and loaded weights repeat too.
class Training {
 public:
  explicit Training(const std::vector<trace::Recording>& recordings);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Steps that every rank completed.
  std::uint32_t common_steps() const { return common_steps_; }
  // The progress of recording `index` when it issued `record`; by default at the recording's end.
  Progress at(std::size_t index, std::uint32_t record = UINT32_MAX) const;
  // The first record after the common steps in recording `index`.
  std::uint32_t end_of_common_steps(std::size_t index) const;

 private:
  struct Rank;
  std::vector<Rank> ranks_;
  std::uint32_t common_steps_{};
};

}  // namespace maya::collate
