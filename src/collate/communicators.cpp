#include "collate/communicators.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collate/grid.h"
#include "op/text.h"

namespace maya::collate {
namespace {

// Limit on the members of all communicators: a size is a single number in a (possibly damaged)
// recording, but needs that many entries here.
constexpr std::size_t most_places = 200'000'000;

std::string describe(const job::Communicator& communicator) {
  std::string name = communicator.name.empty() ? "" : fmt::format(" \"{}\"", communicator.name);
  return fmt::format("communicator {:016x}{} of {} ranks", communicator.id, name,
                     communicator.ranks.size());
}

// For communicators that fit no grid. The ranks of a communicator usually form an arithmetic
// sequence. Two known members determine its stride. With one known member the smallest stride is
// used that gives this member its recorded position.
void place_unrecorded(job::Communicator& communicator, std::int32_t world_size,
                      std::vector<std::string>& notes) {
  auto& ranks = communicator.ranks;
  const auto size = static_cast<std::int32_t>(ranks.size());
  std::vector<std::int32_t> known;
  for (std::int32_t i = 0; i < size; ++i)
    if (ranks[static_cast<std::size_t>(i)] >= 0) known.push_back(i);
  if (known.empty() || static_cast<std::int32_t>(known.size()) == size) return;
  std::int32_t first = known.front(), rank = ranks[static_cast<std::size_t>(first)];
  auto fits = [&](std::int64_t stride) {
    std::int64_t base = rank - stride * first;
    if (stride <= 0 || base < 0 || base + stride * (size - 1) >= world_size) return false;
    return std::all_of(known.begin(), known.end(), [&](std::int32_t i) {
      return ranks[static_cast<std::size_t>(i)] == base + stride * i;
    });
  };
  std::int64_t stride = 0;
  for (std::int64_t s = 1; s * (size - 1) < world_size && stride == 0; ++s) {
    // In a process grid, a group starts within its own block of size·stride ranks.
    if (fits(s) && (rank / s) % size == first) stride = s;
  }
  for (std::int64_t s = 1; s * (size - 1) < world_size && stride == 0; ++s)
    if (fits(s)) stride = s;
  if (stride == 0) {
    notes.push_back(
        fmt::format("{}: only {} of its members were recorded and their ranks follow no "
                    "stride; the others are assumed to follow rank {}",
                    describe(communicator), known.size(), rank));
    stride = 1;
  }
  std::int64_t base = rank - stride * first;
  for (std::int32_t i = 0; i < size; ++i) {
    auto& slot = ranks[static_cast<std::size_t>(i)];
    if (slot < 0)
      slot =
          static_cast<std::int32_t>(std::clamp<std::int64_t>(base + stride * i, 0, world_size - 1));
  }
}

// If a rank occurs several times, its process drives several adjacent GPUs.
void place_gpus(job::Communicator& communicator) {
  std::map<std::int32_t, std::int32_t> places;
  std::int32_t most = 1;
  for (std::int32_t rank : communicator.ranks) most = std::max(most, ++places[rank]);
  if (most == 1) return;
  places.clear();
  for (std::int32_t rank : communicator.ranks)
    communicator.gpus.push_back(rank * most + places[rank]++);
}

std::string call_text(const Member& member, const std::vector<CommunicatorCall>& calls,
                      std::size_t sequence) {
  if (sequence >= calls.size()) return "nothing (no such call)";
  const CommunicatorCall& call = calls[sequence];
  return fmt::format("{} (record {})", to_text(member.recording->ops[call.op].work), call.record);
}

bool same_call(const Work& a, const Work& b) {
  const auto &x = std::get<Collective>(a), &y = std::get<Collective>(b);
  return x.kind == y.kind && x.bytes == y.bytes && x.root == y.root;
}

Status check_collectives(std::span<const Member> members, const job::Communicator& communicator,
                         std::vector<std::string>& notes) {
  const Member* first = nullptr;
  std::uint16_t first_slot{};
  for (std::size_t i = 0; i < communicator.ranks.size(); ++i) {
    int index = find_member(members, communicator.ranks[i]);
    if (index < 0 || communicator.slots[i] == job::none) continue;
    const Member& member = members[static_cast<std::size_t>(index)];
    auto slot = static_cast<std::uint16_t>(communicator.slots[i]);
    if (first == nullptr) {
      first = &member, first_slot = slot;
      continue;
    }
    const CollectiveUse &a = first->print.collectives[first_slot],
                        &b = member.print.collectives[slot];
    if (a.count == b.count && a.hash == b.hash) continue;
    auto ours = collective_calls(*first->recording, first_slot);
    auto theirs = collective_calls(*member.recording, slot);
    std::size_t n = 0;
    while (
        n < ours.size() && n < theirs.size() &&
        same_call(first->recording->ops[ours[n].op].work, member.recording->ops[theirs[n].op].work))
      ++n;
    bool cut = (n >= ours.size() && !first->recording->complete) ||
               (n >= theirs.size() && !member.recording->complete);
    std::string message = fmt::format(
        "{}: at sequence number {} rank {} calls {}, rank {} calls {}", describe(communicator), n,
        first->recording->identity.rank, call_text(*first, ours, n),
        member.recording->identity.rank, call_text(member, theirs, n));
    if (!cut)
      return Error{message +
                   "; the members of a communicator must make the same calls in the same "
                   "order: are these recordings of one run?"};
    notes.push_back(message + "; the recording ends there");
  }
  return {};
}

Status check_channels(std::span<const Member> members,
                      std::span<const job::Communicator> communicators,
                      std::vector<std::string>& notes) {
  for (const Member& member : members) {
    const std::int32_t rank = member.recording->identity.rank;
    for (const ChannelUse& channel : member.print.channels) {
      const job::Communicator& communicator = communicators[member.communicator[channel.slot]];
      auto place = static_cast<std::size_t>(channel.peer);
      int index = find_member(members, communicator.ranks[place]);
      if (index < 0 || communicator.slots[place] == job::none) continue;
      const Member& peer = members[static_cast<std::size_t>(index)];
      std::int32_t own = member.recording->communicators[channel.slot].rank;
      auto peer_slot = static_cast<std::uint16_t>(communicator.slots[place]);
      const ChannelUse empty;
      std::uint32_t found = peer.print.channel(peer_slot, own);
      const ChannelUse* back = found == job::none ? &empty : &peer.print.channels[found];
      if (channel.sends == back->receives && channel.send_hash == back->receive_hash) {
        if (back != &empty || channel.receives == 0) continue;
        // This rank receives from a peer that never sends. The peer has no channel to be checked.
      }
      bool send = channel.sends != back->receives || channel.send_hash != back->receive_hash;
      auto ours = message_calls(*member.recording, channel.slot, channel.peer, send);
      auto theirs = message_calls(*peer.recording, peer_slot, own, !send);
      auto bytes = [](const Member& m, const CommunicatorCall& call) {
        return std::get<PointToPoint>(m.recording->ops[call.op].work).bytes;
      };
      std::size_t n = 0;
      while (n < ours.size() && n < theirs.size() &&
             bytes(member, ours[n]) == bytes(peer, theirs[n]))
        ++n;
      bool cut = (n >= ours.size() && !member.recording->complete) ||
                 (n >= theirs.size() && !peer.recording->complete);
      std::string message =
          fmt::format("{}: message {} of rank {} {} rank {}: rank {} calls {}, rank {} calls {}",
                      describe(communicator), n, rank, send ? "to" : "from",
                      peer.recording->identity.rank, rank, call_text(member, ours, n),
                      peer.recording->identity.rank, call_text(peer, theirs, n));
      if (!cut) return Error{message + "; every send needs a receive of the same size"};
      notes.push_back(message + "; the recording ends there");
    }
  }
  return {};
}

}  // namespace

int find_member(std::span<const Member> members, std::int32_t rank) {
  auto it = std::lower_bound(
      members.begin(), members.end(), rank,
      [](const Member& m, std::int32_t r) { return m.recording->identity.rank < r; });
  if (it == members.end() || it->recording->identity.rank != rank) return -1;
  return static_cast<int>(it - members.begin());
}

Result<std::vector<job::Communicator>> match_communicators(std::vector<Member>& members,
                                                           std::int32_t world_size) {
  // A unique id may be reused after its communicator was destroyed. The n-th use on one rank is the
  // n-th use on all ranks.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> number;
  std::vector<job::Communicator> result;
  std::size_t places = 0;
  for (Member& member : members) {
    // A process with several GPUs may be several members of one communicator.
    std::map<std::pair<std::uint64_t, std::int32_t>, std::uint32_t> uses;
    const auto& communicators = member.recording->communicators;
    const std::int32_t rank = member.recording->identity.rank;
    for (std::uint32_t slot = 0; slot < communicators.size(); ++slot) {
      const trace::Communicator& c = communicators[slot];
      const std::int64_t most = std::int64_t{world_size} * member.print.devices;
      if (c.size < 1 || c.size > most || c.rank < 0 || c.rank >= c.size)
        return Error{
            fmt::format("rank {}: communicator {:016x} says rank {} of {} in a job of {} "
                        "ranks: the recording is damaged; record again",
                        rank, c.id, c.rank, c.size, world_size)};
      auto [it, fresh] = number.try_emplace({c.id, uses[{c.id, c.rank}]++}, result.size());
      if (fresh) {
        places += static_cast<std::size_t>(c.size);
        if (places > most_places)
          return Error{fmt::format(
              "rank {}: its communicators have more than {} members in all: the recording is "
              "damaged; record again",
              rank, most_places)};
        auto size = static_cast<std::size_t>(c.size);
        result.push_back({c.id, std::vector<std::int32_t>(size, -1),
                          std::vector<std::uint32_t>(size, job::none), c.name});
      }
      job::Communicator& communicator = result[it->second];
      if (communicator.ranks.size() != static_cast<std::size_t>(c.size))
        return Error{
            fmt::format("{}: rank {} says it has {} members: are these recordings of one run?",
                        describe(communicator), rank, c.size)};
      auto place = static_cast<std::size_t>(c.rank);
      if (communicator.slots[place] != job::none)
        return Error{
            fmt::format("{}: ranks {} and {} both say they are its rank {}: are these "
                        "recordings of one run?",
                        describe(communicator), communicator.ranks[place], rank, c.rank)};
      communicator.ranks[place] = rank;
      communicator.slots[place] = slot;
      for (std::size_t i = 0; i < c.ranks.size() && i < communicator.ranks.size(); ++i) {
        auto& known = communicator.ranks[i];
        if (known >= 0 ? known != c.ranks[i] : c.ranks[i] < 0 || c.ranks[i] >= world_size)
          return Error{
              fmt::format("{}: rank {} says its rank {} is rank {} of the job: are these "
                          "recordings of one run?",
                          describe(communicator), rank, i, c.ranks[i])};
        known = c.ranks[i];
      }
      if (communicator.name.empty()) communicator.name = c.name;
      member.communicator.push_back(it->second);
    }
  }
  return result;
}

void place_members(std::vector<job::Communicator>& communicators, const Grid* grid,
                   std::int32_t world_size, std::vector<std::string>& notes) {
  for (std::size_t c = 0; c < communicators.size(); ++c) {
    auto& communicator = communicators[c];
    if (grid != nullptr && std::count(communicator.ranks.begin(), communicator.ranks.end(), -1) > 0)
      if (auto ranks = grid->members_of(c, communicator.ranks); !ranks.empty())
        communicator.ranks = std::move(ranks);
    place_unrecorded(communicator, world_size, notes);
    place_gpus(communicator);
  }
}

Status check_calls(std::span<const Member> members,
                   std::span<const job::Communicator> communicators,
                   std::vector<std::string>& notes) {
  for (const job::Communicator& communicator : communicators)
    if (Status ok = check_collectives(members, communicator, notes); !ok) return ok;
  return check_channels(members, communicators, notes);
}

}  // namespace maya::collate
