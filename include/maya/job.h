// A whole job: rank classes, matched communicators, found steps. What collate makes and the
// simulator runs. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/trace.h"

namespace maya::job {

inline constexpr std::uint32_t none = 0xffffffff;

// One peer a rank exchanges point-to-point messages with, over one communicator. The k-th send of a
// channel meets the k-th receive of the peer's channel, and the other way round.
struct Channel {
  std::uint16_t slot{};              // communicator number in the class's recording
  std::int32_t peer{};               // rank within the communicator, as PointToPoint::peer
  std::uint32_t peer_class{none};    // none: the peer was not recorded; it counts as simultaneous
  std::uint32_t peer_channel{none};  // index into the peer class's channels
};

// Ranks whose op streams are equal share one class: one recording stands for all of them.
struct RankClass {
  std::vector<std::int32_t> ranks;  // members, ascending
  std::int32_t
      representative{};        // the member that was recorded (ranks[0] unless ranks are missing)
  trace::Recording recording;  // of the representative
  // The representative did not run either: its recording was put together from this rank's, which
  // does the same work in another order (a stage of the same pipeline). -1: it ran.
  std::int32_t derived_from{-1};
  std::int32_t devices{1};  // GPUs each member's process put work on
  // Record index at which each found step begins, and one more: the end of the last step. The same
  // number of entries in every class: step k of all classes is the same step of the job.
  std::vector<std::uint32_t> step_begin;
  std::vector<Channel> channels;
};

// One communicator of the job with all its members.
struct Communicator {
  std::uint64_t id{};
  std::vector<std::int32_t> ranks;   // job ranks in communicator order
  std::vector<std::uint32_t> slots;  // its number in each member's recording; none: not known
  std::string name;
  // Where the network finds the members: GPUs of the job. Empty: as `ranks`. Differs where one
  // process drives several GPUs: they are members of one rank.
  std::vector<std::int32_t> gpus{};

  const std::vector<std::int32_t>& placement() const { return gpus.empty() ? ranks : gpus; }
};

enum class StepsFoundBy : std::uint8_t { annotation, optimizer, backward, period, user, whole_run };

// Folding is exact: members of a class have equal op streams, and for each communicator slot and
// each channel of a class, all members meet the same classes on the same slots and channels, in a
// communicator of the same size and spread over nodes. By induction over events, members then do
// the same at the same time.
struct Job {
  std::int32_t world_size{1};
  std::vector<RankClass> classes;
  std::vector<std::uint32_t> class_of_rank;
  std::vector<Communicator> communicators;
  StepsFoundBy found_by{StepsFoundBy::whole_run};
  std::uint32_t warmup_steps{};        // leading steps excluded from the answer
  std::vector<std::uint8_t> measured;  // per found step: 1 = steady, counts for the answer
  bool truncated{};                // a recording is cut off: the end of the run may not match up
  std::vector<std::string> notes;  // what a user should know (missing ranks, one step only …)

  std::size_t steps() const { return measured.size(); }
  std::int32_t gpus() const {
    std::int64_t sum = 0;
    for (const RankClass& c : classes) sum += static_cast<std::int64_t>(c.ranks.size()) * c.devices;
    return static_cast<std::int32_t>(sum > world_size ? sum : world_size);
  }
};

}  // namespace maya::job
