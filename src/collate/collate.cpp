#include "maya/collate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "collate/communicators.h"
#include "collate/fold.h"
#include "collate/grid.h"
#include "collate/host_times.h"
#include "collate/stages.h"
#include "collate/steps.h"

namespace maya::collate {
namespace {

Status check_identities(const std::vector<trace::Recording>& recordings, std::int32_t world_size) {
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const trace::Identity& id = recordings[i].identity;
    if (id.world_size != world_size)
      return Error{
          fmt::format("rank {} says the job has {} ranks, rank {} says {}: these are recordings "
                      "of different jobs",
                      recordings[0].identity.rank, world_size, id.rank, id.world_size)};
    if (id.rank < 0 || id.rank >= world_size)
      return Error{
          fmt::format("a recording says it is rank {} of {}: the recording is damaged; record "
                      "again",
                      id.rank, world_size)};
    if (i > 0 && recordings[i - 1].identity.rank == id.rank)
      return Error{fmt::format("two recordings say they are rank {}: keep one of them", id.rank)};
    if (id.command != recordings[0].identity.command && !id.command.empty() &&
        !recordings[0].identity.command.empty() && id.gpu != recordings[0].identity.gpu)
      return Error{fmt::format(
          "rank {} ran \"{}\" and rank {} ran \"{}\": these are recordings of "
          "different jobs",
          recordings[0].identity.rank, recordings[0].identity.command, id.rank, id.command)};
  }
  return {};
}

// The recorded member whose recording is used for a rank: the one that the user named, else the one
// with the same coordinates in the grid, else the nearest one below.
std::size_t stand_in(const std::vector<Member>& members, const std::vector<std::int32_t>& recorded,
                     const Grid* grid, std::int32_t rank, const Options& options) {
  std::int32_t named = -1;
  if (static_cast<std::size_t>(rank) < options.stand_in.size())
    named = options.stand_in[static_cast<std::size_t>(rank)];
  if (int index = find_member(members, named); index >= 0) return static_cast<std::size_t>(index);
  if (grid != nullptr)
    return static_cast<std::size_t>(find_member(members, grid->stand_in(rank, recorded)));
  const auto above = std::upper_bound(recorded.begin(), recorded.end(), rank);
  return above == recorded.begin() ? 0 : static_cast<std::size_t>(above - recorded.begin() - 1);
}

// Adds the stages of a pipeline that did not run, derived from those that did.
void add_derived_stages(std::vector<trace::Recording>& recordings,
                        std::map<std::int32_t, std::int32_t>& derived_from,
                        std::vector<std::string>& notes) {
  DerivedStages derived = derive_stages(recordings);
  for (std::size_t i = 0; i < derived.recordings.size(); ++i) {
    derived_from[derived.recordings[i].identity.rank] = derived.from[i];
    recordings.push_back(std::move(derived.recordings[i]));
  }
  for (std::string& note : derived.notes) notes.push_back(std::move(note));
  std::sort(recordings.begin(), recordings.end(),
            [](const auto& a, const auto& b) { return a.identity.rank < b.identity.rank; });
}

// Messages from ranks without a recording are never late in the simulation: adds a note about them.
void note_unrecorded_partners(job::Job& job, const std::vector<Member>& members) {
  std::set<std::int32_t> missing;
  for (const Member& member : members)
    for (const ChannelUse& channel : member.print.channels) {
      const auto& ranks = job.communicators[member.communicator[channel.slot]].ranks;
      const std::int32_t peer = ranks[static_cast<std::size_t>(channel.peer)];
      if (find_member(members, peer) < 0) missing.insert(peer);
    }
  if (missing.empty()) return;
  const std::size_t shown = std::min<std::size_t>(missing.size(), 4);
  job.notes.push_back(fmt::format(
      "recorded ranks exchange messages with {} unrecorded rank{} ({}{}), assumed to be always "
      "ready, so the pipeline bubble is missing: record them too (--ranks unique)",
      missing.size(), missing.size() == 1 ? "" : "s",
      fmt::join(missing.begin(), std::next(missing.begin(), static_cast<std::ptrdiff_t>(shown)),
                ", "),
      shown < missing.size() ? ", …" : ""));
}

// Finds the slots of members that were not recorded: the slot that the stand-in uses for the same
// purpose. Within a class this is the same slot, else the slot of a communicator of the same size
// and kind. A member for which no slot is found is assumed to arrive on time.
void place_stand_ins(job::Job& job, const std::vector<Member>& members) {
  for (job::Communicator& communicator : job.communicators) {
    int known = -1;
    std::uint32_t known_slot = 0;
    for (std::size_t i = 0; i < communicator.ranks.size() && known < 0; ++i)
      if (communicator.slots[i] != job::none) {
        known = find_member(members, communicator.ranks[i]);
        known_slot = communicator.slots[i];
      }
    if (known < 0) continue;
    const Member& us = members[static_cast<std::size_t>(known)];
    std::uint32_t our_class =
        job.class_of_rank[static_cast<std::size_t>(us.recording->identity.rank)];
    for (std::size_t i = 0; i < communicator.ranks.size(); ++i) {
      if (communicator.slots[i] != job::none) continue;
      std::uint32_t other = job.class_of_rank[static_cast<std::size_t>(communicator.ranks[i])];
      if (other == our_class) {
        communicator.slots[i] = known_slot;
        continue;
      }
      int index = find_member(members, job.classes[other].representative);
      const Member& them = members[static_cast<std::size_t>(index)];
      const CollectiveUse& use = us.print.collectives[known_slot];
      for (std::uint32_t s = 0; s < them.communicator.size(); ++s)
        if (them.recording->communicators[s].size == us.recording->communicators[known_slot].size &&
            them.print.collectives[s].count == use.count &&
            them.print.collectives[s].hash == use.hash) {
          communicator.slots[i] = s;
          if (s == known_slot) break;
        }
    }
  }
}

}  // namespace

Result<job::Job> collate(std::vector<trace::Recording> recordings, const Options& options) {
  if (recordings.empty()) return Error{"there is no recording: record a run first (maya run)"};
  std::sort(recordings.begin(), recordings.end(),
            [](const auto& a, const auto& b) { return a.identity.rank < b.identity.rank; });
  job::Job job;
  job.world_size = recordings[0].identity.world_size;
  if (job.world_size < 1 || job.world_size > 1 << 22)
    return Error{
        fmt::format("rank {} says the job has {} ranks: the recording is damaged; record again",
                    recordings[0].identity.rank, job.world_size)};
  if (Status ok = check_identities(recordings, job.world_size); !ok) return ok.error();
  const std::size_t recorded_ranks = recordings.size();
  std::map<std::int32_t, std::int32_t> derived_from;
  if (recorded_ranks > 1 && recordings.size() < static_cast<std::size_t>(job.world_size))
    add_derived_stages(recordings, derived_from, job.notes);

  std::vector<Member> members;
  for (const trace::Recording& recording : recordings) {
    Result<Fingerprint> print = fingerprint(recording);
    if (!print) return print.error();
    members.push_back({&recording, std::move(*print), {}});
    job.truncated |= !recording.complete;
  }
  auto communicators = match_communicators(members, job.world_size);
  if (!communicators) return communicators.error();
  job.communicators = std::move(*communicators);
  std::optional<Grid> grid;
  if (recorded_ranks < static_cast<std::size_t>(job.world_size)) {
    grid = Grid::find(members, job.communicators, job.world_size);
    job.notes.push_back(fmt::format(
        "{} of {} ranks were recorded; each other rank is assumed to do the same work as {}",
        recorded_ranks, job.world_size,
        !options.stand_in.empty() ? "its stand-in"
        : !grid                   ? "the nearest recorded rank below it"
        : grid->axes().size() == 1
            ? "a recorded one"
            : fmt::format("the recorded one at its place in the process grid, {} (innermost first)",
                          grid->text())));
  }
  const Grid* cut = grid ? &*grid : nullptr;
  place_members(job.communicators, cut, job.world_size, job.notes);
  if (Status ok = check_calls(members, job.communicators, job.notes); !ok) return ok.error();

  Fold folded = fold(members, job.communicators, options.fold, options.gpus_per_node);
  job.class_of_rank.resize(static_cast<std::size_t>(job.world_size));
  job.classes.resize(folded.representative.size());
  std::vector<std::int32_t> recorded;
  for (const Member& member : members) recorded.push_back(member.recording->identity.rank);
  for (std::int32_t rank = 0; rank < job.world_size; ++rank) {
    int index = find_member(members, rank);
    std::size_t member = index >= 0 ? static_cast<std::size_t>(index)
                                    : stand_in(members, recorded, cut, rank, options);
    std::uint32_t c = folded.class_of[member];
    job.class_of_rank[static_cast<std::size_t>(rank)] = c;
    job.classes[c].ranks.push_back(rank);
  }
  for (std::size_t c = 0; c < job.classes.size(); ++c) {
    const Member& member = members[folded.representative[c]];
    job.classes[c].representative = member.recording->identity.rank;
    if (const auto from = derived_from.find(job.classes[c].representative);
        from != derived_from.end())
      job.classes[c].derived_from = from->second;
    job.classes[c].devices = member.print.devices;
    job.classes[c].channels = channels_of(member, members, job.communicators, job.class_of_rank);
  }
  place_stand_ins(job, members);
  note_unrecorded_partners(job, members);
  const char* host = options.settled ? "mean" : "lowest";
  if (job.classes.size() < recordings.size())
    job.notes.push_back(
        job.classes.size() == 1
            ? fmt::format("the {} recorded ranks do identical work; the {} host times are used",
                          recordings.size(), host)
            : fmt::format("{} recorded ranks form {} groups that do identical work; each uses its "
                          "{} host times",
                          recordings.size(), job.classes.size(), host));
  std::vector<Twins> twins(job.classes.size());
  for (std::size_t m = 0; m < recordings.size(); ++m)
    if (m != folded.representative[folded.class_of[m]])
      twins[folded.class_of[m]].push_back(&recordings[m]);
  for (std::size_t c = 0; c < job.classes.size(); ++c)
    job.classes[c].recording = std::move(recordings[folded.representative[c]]);
  if (Status ok = find_steps(job, options); !ok) return ok.error();
  settle_host_times(job, twins, options.settled);
  return job;
}

}  // namespace maya::collate
