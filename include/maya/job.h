// A whole job: classes of ranks, matched communicators and detected steps. collate() makes it, the
// simulator runs it. Plain data.
//
// Vocabulary. A *slot* is the index of a communicator in the recording of one rank
// (trace::Recording::communicators). A *communicator* of the job is an index into
// Job::communicators; its members may know it by different slots. A *class* is a set of ranks that
// do identical work; it is simulated once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "maya/trace.h"

namespace maya::job {

inline constexpr std::uint32_t none = 0xffffffff;

// A channel holds the point-to-point messages that a rank exchanges with one peer over one
// communicator. The k-th send of a channel is matched with the k-th receive of the peer's channel,
// and vice versa.
struct Channel {
  std::uint16_t slot{};  // in the recording of the class
  std::int32_t peer{};   // rank within the communicator, as PointToPoint::peer
  // none: the peer was not recorded. It is then assumed to be ready whenever this rank is.
  std::uint32_t peer_class{none};
  std::uint32_t peer_channel{none};  // index into the channels of the peer's class
};

// Ranks with identical op streams form one class. One recording is used for all of them.
struct RankClass {
  std::vector<std::int32_t> ranks;  // members, ascending
  // The member whose recording is used: ranks[0], unless that rank was not recorded.
  std::int32_t representative{};
  trace::Recording recording;  // of the representative
  // If the representative did not run, its recording was derived from that of this rank: another
  // stage of the same pipeline, which does the same work in another order. -1: it ran.
  std::int32_t derived_from{-1};
  std::int32_t devices{1};  // GPUs that the process of each member uses
  // Record index at which each detected step begins, followed by the end of the last step. Every
  // class has the same number of entries: step k of all classes is the same step of the job.
  std::vector<std::uint32_t> step_begin;
  std::vector<Channel> channels;
};

// One communicator of the job with all its members.
struct Communicator {
  std::uint64_t id{};
  std::vector<std::int32_t> ranks;   // ranks of the job, in communicator order
  std::vector<std::uint32_t> slots;  // its slot in each member's recording; none: not known
  std::string name;
  // The GPUs of the members, for the network model. Empty: the same numbers as `ranks`. They differ
  // if one process drives several GPUs, because these are then members of the same rank.
  std::vector<std::int32_t> gpus{};

  const std::vector<std::int32_t>& placement() const { return gpus.empty() ? ranks : gpus; }
};

enum class StepsFoundBy : std::uint8_t { annotation, optimizer, backward, period, user, whole_run };

// On an idle machine the spread of host times (Job::host_spread) was 1.08 to 1.17, on a busy
// one 1.21 to 1.40 (docs/simulation.md).
inline constexpr double busy_host_spread = 1.2;

// Folding ranks into classes is exact. Members of a class have identical op streams. For each slot
// and each channel of a class, all members communicate with the same classes over the same slots
// and channels, in a communicator of the same size and distribution over nodes. By induction over
// the events, members therefore do the same work at the same time.
struct Job {
  std::int32_t world_size{1};
  std::vector<RankClass> classes;
  std::vector<std::uint32_t> class_of_rank;
  std::vector<Communicator> communicators;
  StepsFoundBy found_by{StepsFoundBy::whole_run};
  std::uint32_t warmup_steps{};        // leading steps that are excluded from the answer
  std::vector<std::uint8_t> measured;  // per detected step: 1 if it is steady and is measured
  // By how much the host time of equal calls differed: their median over the least part that is
  // used. More than 1 by far: the machine was busy while it recorded.
  double host_spread{1};
  bool truncated{};  // a recording ends early (crash, kill): the ends of the ranks may not match
  // Why the detected step says nothing about the steps of the program; empty if it does.
  std::string unusable_step;
  std::vector<std::string> notes;  // shown to the user (missing ranks, only one step …)

  std::size_t steps() const { return measured.size(); }
  std::int32_t gpus() const {
    std::int64_t sum = 0;
    for (const RankClass& c : classes) sum += static_cast<std::int64_t>(c.ranks.size()) * c.devices;
    return static_cast<std::int32_t>(sum > world_size ? sum : world_size);
  }
};

}  // namespace maya::job
