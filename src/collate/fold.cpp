#include "collate/fold.h"

#include <algorithm>
#include <unordered_map>

#include "collate/hash.h"

namespace maya::collate {
namespace {

// A hash of how the members of a communicator are distributed over nodes, independent of which
// nodes these are.
std::uint64_t spread(const job::Communicator& communicator, int gpus_per_node) {
  std::uint64_t h = communicator.ranks.size();
  if (gpus_per_node <= 0) return h;
  std::vector<std::int32_t> nodes;
  nodes.reserve(communicator.ranks.size());
  for (std::int32_t rank : communicator.ranks) nodes.push_back(rank / gpus_per_node);
  std::sort(nodes.begin(), nodes.end());
  std::vector<std::uint32_t> counts;
  for (std::size_t i = 0, j = 0; i < nodes.size(); i = j) {
    while (j < nodes.size() && nodes[j] == nodes[i]) ++j;
    counts.push_back(static_cast<std::uint32_t>(j - i));
  }
  std::sort(counts.begin(), counts.end());
  for (std::uint32_t count : counts) h = mix(h, count);
  return h;
}

// The peer of a channel. It does not change during the refinement, so it is looked up once.
struct Partner {
  std::uint32_t member{job::none}, slot{job::none}, channel{job::none};
  bool same_node{};
};

class Refinement {
 public:
  Refinement(std::span<const Member> members, std::span<const job::Communicator> communicators,
             int gpus_per_node)
      : members_(members), communicators_(communicators) {
    for (const auto& communicator : communicators) {
      spread_.push_back(spread(communicator, gpus_per_node));
      auto& who = recorded_.emplace_back();
      for (std::size_t i = 0; i < communicator.ranks.size(); ++i) {
        int index = find_member(members, communicator.ranks[i]);
        if (index >= 0) who.push_back({static_cast<std::uint32_t>(index), communicator.slots[i]});
      }
    }
    for (const Member& member : members) {
      auto& partners = partners_.emplace_back();
      for (const ChannelUse& channel : member.print.channels) {
        const auto& communicator = communicators[member.communicator[channel.slot]];
        auto place = static_cast<std::size_t>(channel.peer);
        Partner partner;
        std::int32_t rank = communicator.ranks[place];
        if (gpus_per_node > 0)
          partner.same_node =
              rank / gpus_per_node == member.recording->identity.rank / gpus_per_node;
        if (int index = find_member(members, rank); index >= 0) {
          partner.member = static_cast<std::uint32_t>(index);
          partner.slot = communicator.slots[place];
          partner.channel = members[partner.member].print.channel(
              partner.slot, member.recording->communicators[channel.slot].rank);
        }
        partners.push_back(partner);
      }
    }
  }

  std::vector<std::uint32_t> run(std::vector<std::uint64_t> hashes) {
    std::size_t classes = 0;
    std::vector<std::uint32_t> colours = number(hashes);
    for (;;) {
      std::size_t now = *std::max_element(colours.begin(), colours.end()) + std::size_t{1};
      if (now == classes || now == members_.size()) return colours;
      classes = now;
      std::vector<std::uint64_t> meets = meet(colours);
      for (std::size_t i = 0; i < members_.size(); ++i) {
        std::uint64_t h = colours[i];
        for (std::uint32_t c : members_[i].communicator) h = mix(h, meets[c]);
        for (const Partner& p : partners_[i]) {
          h = mix(h, p.member == job::none ? ~0ull : colours[p.member]);
          h = mix(h, std::uint64_t{p.slot} << 33 | std::uint64_t{p.channel} << 1 | p.same_node);
        }
        hashes[i] = h;
      }
      colours = number(hashes);
    }
  }

 private:
  static std::vector<std::uint32_t> number(const std::vector<std::uint64_t>& hashes) {
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    std::vector<std::uint32_t> colours;
    colours.reserve(hashes.size());
    for (std::uint64_t h : hashes)
      colours.push_back(
          numbers.try_emplace(h, static_cast<std::uint32_t>(numbers.size())).first->second);
    return colours;
  }

  // Per communicator: a hash of the set of (class, slot) pairs of its members.
  std::vector<std::uint64_t> meet(const std::vector<std::uint32_t>& colours) const {
    std::vector<std::uint64_t> result;
    result.reserve(communicators_.size());
    std::vector<std::uint64_t> pairs;
    for (std::size_t c = 0; c < communicators_.size(); ++c) {
      pairs.clear();
      for (auto [member, slot] : recorded_[c])
        pairs.push_back(std::uint64_t{colours[member]} << 32 | slot);
      std::sort(pairs.begin(), pairs.end());
      pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
      std::uint64_t h = spread_[c];
      for (std::uint64_t pair : pairs) h = mix(h, pair);
      result.push_back(h);
    }
    return result;
  }

  std::span<const Member> members_;
  std::span<const job::Communicator> communicators_;
  std::vector<std::uint64_t> spread_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> recorded_;
  std::vector<std::vector<Partner>> partners_;
};

}  // namespace

Fold fold(std::span<const Member> members, std::span<const job::Communicator> communicators,
          bool merge, int gpus_per_node) {
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < members.size(); ++i)
    hashes.push_back(merge ? members[i].print.hash : i);
  Fold result;
  result.class_of = Refinement(members, communicators, gpus_per_node).run(std::move(hashes));
  for (std::uint32_t i = 0; i < result.class_of.size(); ++i)
    if (result.class_of[i] == result.representative.size()) result.representative.push_back(i);
  return result;
}

std::vector<job::Channel> channels_of(const Member& member, std::span<const Member> members,
                                      std::span<const job::Communicator> communicators,
                                      std::span<const std::uint32_t> class_of_rank) {
  std::vector<job::Channel> result;
  for (const ChannelUse& use : member.print.channels) {
    job::Channel channel{use.slot, use.peer};
    const auto& communicator = communicators[member.communicator[use.slot]];
    auto place = static_cast<std::size_t>(use.peer);
    std::int32_t rank = communicator.ranks[place];
    if (int index = find_member(members, rank); index >= 0) {
      channel.peer_class = class_of_rank[static_cast<std::size_t>(rank)];
      channel.peer_channel = members[static_cast<std::size_t>(index)].print.channel(
          communicator.slots[place], member.recording->communicators[use.slot].rank);
      if (channel.peer_channel == job::none) channel.peer_class = job::none;
    }
    result.push_back(channel);
  }
  return result;
}

}  // namespace maya::collate
