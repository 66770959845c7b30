#include "simulate/meetings.h"

#include <algorithm>
#include <set>

namespace maya::simulate {
namespace {

std::uint64_t key(std::uint16_t slot, std::int32_t peer) {
  return std::uint64_t{slot} << 32 | static_cast<std::uint32_t>(peer);
}

// The placement of a communicator as the network model sees it: nodes numbered in order of
// appearance, and the position in the node.
std::vector<std::int32_t> placement(const job::Communicator& communicator, int gpus_per_node) {
  std::vector<std::int32_t> result;
  std::unordered_map<std::int32_t, std::int32_t> nodes;
  for (std::int32_t rank : communicator.placement()) {
    auto node = nodes.try_emplace(rank / gpus_per_node, static_cast<std::int32_t>(nodes.size()));
    result.push_back(node.first->second);
    result.push_back(rank % gpus_per_node);
  }
  return result;
}

}  // namespace

Meetings::Meetings(const job::Job& job, int gpus_per_node) : job_(job) {
  for (const job::RankClass& c : job.classes) {
    std::size_t slots = c.recording.communicators.size();
    communicator_of_.emplace_back(slots, none);
    domain_of_.emplace_back(slots, none);
    calls_.emplace_back(slots, 0);
    channels_.emplace_back(c.channels.size());
    auto& index = channel_index_.emplace_back();
    for (std::uint32_t i = 0; i < c.channels.size(); ++i)
      index.try_emplace(key(c.channels[i].slot, c.channels[i].peer), i);
  }
  find_domains(gpus_per_node);
  count_calls();
  number_meets();
}

void Meetings::find_domains(int gpus_per_node) {
  const auto& communicators = job_.communicators;
  for (std::uint32_t x = 0; x < communicators.size(); ++x)
    for (std::size_t i = 0; i < communicators[x].ranks.size(); ++i) {
      std::uint32_t c = job_.class_of_rank[static_cast<std::size_t>(communicators[x].ranks[i])];
      std::uint32_t slot = communicators[x].slots[i];
      if (job_.classes[c].representative == communicators[x].ranks[i] &&
          slot < communicator_of_[c].size())
        communicator_of_[c][slot] = x;
    }
  for (std::uint32_t c = 0; c < communicator_of_.size(); ++c)
    for (std::uint32_t slot = 0; slot < communicator_of_[c].size(); ++slot) {
      if (domain_of_[c][slot] != none) continue;
      auto number = static_cast<std::uint32_t>(domains_.size());
      Domain& domain = domains_.emplace_back();
      domain_of_[c][slot] = number;
      domain.parties = 1;
      std::uint32_t x = communicator_of_[c][slot];
      if (x == none) continue;
      for (std::size_t i = 0; i < communicators[x].ranks.size(); ++i) {
        std::uint32_t other =
            job_.class_of_rank[static_cast<std::size_t>(communicators[x].ranks[i])];
        std::uint32_t other_slot = communicators[x].slots[i];
        if (other_slot >= domain_of_[other].size() || domain_of_[other][other_slot] != none)
          continue;
        domain_of_[other][other_slot] = number;
        ++domain.parties;
      }
    }
  // For each domain, one communicator of each placement.
  std::vector<std::set<std::vector<std::int32_t>>> seen(domains_.size());
  for (std::uint32_t x = 0; x < communicators.size(); ++x)
    for (std::size_t i = 0; i < communicators[x].ranks.size(); ++i) {
      std::uint32_t slot = communicators[x].slots[i];
      std::uint32_t c = job_.class_of_rank[static_cast<std::size_t>(communicators[x].ranks[i])];
      if (slot >= domain_of_[c].size()) continue;
      std::uint32_t d = domain_of_[c][slot];
      if (domains_[d].communicators.size() < 64 &&
          seen[d].insert(placement(communicators[x], gpus_per_node)).second)
        domains_[d].communicators.push_back(x);
      for (std::int32_t gpu : communicators[x].placement())
        domains_[d].between_nodes |=
            gpu / gpus_per_node != communicators[x].placement()[0] / gpus_per_node;
      break;
    }
}

void Meetings::count_calls() {
  using trace::Kind;
  for (std::uint32_t c = 0; c < job_.classes.size(); ++c) {
    const trace::Recording& recording = job_.classes[c].recording;
    auto count = [&](const trace::Record& r) {
      if (r.kind == Kind::collective) {
        ++calls_[c][r.aux];
      } else if (r.kind == Kind::point_to_point) {
        const auto& message = std::get<PointToPoint>(recording.ops[r.value].work);
        std::uint32_t i = channel(c, r.aux, message.peer);
        if (i != none) ++(message.send ? channels_[c][i].sends : channels_[c][i].receives);
      }
    };
    for (const trace::Record& r : recording.records) {
      if (r.kind == Kind::graph_launch)
        for (const auto& node : recording.graphs[r.value].nodes) count(node.record);
      else
        count(r);
    }
  }
}

void Meetings::number_meets() {
  for (std::uint32_t c = 0; c < calls_.size(); ++c)
    for (std::uint32_t slot = 0; slot < calls_[c].size(); ++slot) {
      Domain& domain = domains_[domain_of_[c][slot]];
      domain.calls = std::max(domain.calls, calls_[c][slot]);
    }
  std::int64_t number = 0;
  for (Domain& domain : domains_) {
    domain.number = number;
    number += domain.calls;
    if (domain.parties < 2) continue;
    domain.begin = static_cast<std::uint32_t>(meets_.size());
    meets_.resize(meets_.size() + domain.calls, {domain.parties});
    domain.finish = static_cast<std::uint32_t>(meets_.size());
    meets_.resize(meets_.size() + domain.calls, {domain.parties});
  }
  // The meetings of a channel belong to its sender.
  for (std::uint32_t c = 0; c < channels_.size(); ++c)
    for (std::uint32_t i = 0; i < channels_[c].size(); ++i) {
      const job::Channel& channel = job_.classes[c].channels[i];
      std::uint32_t count = channels_[c][i].sends;
      if (channel.peer_class != none)
        count = std::max(count, channels_[channel.peer_class][channel.peer_channel].receives);
      channels_[c][i].first = static_cast<std::uint32_t>(meets_.size());
      meets_.resize(meets_.size() + count, {2});
    }
}

std::uint32_t Meetings::channel(std::uint32_t rank_class, std::uint16_t slot,
                                std::int32_t peer) const {
  auto it = channel_index_[rank_class].find(key(slot, peer));
  return it == channel_index_[rank_class].end() ? none : it->second;
}

std::uint32_t Meetings::message(std::uint32_t rank_class, std::uint32_t channel, bool send,
                                std::uint32_t n) const {
  const job::Channel& ch = job_.classes[rank_class].channels[channel];
  if (ch.peer_class == none) return none;
  return send ? channels_[rank_class][channel].first + n
              : channels_[ch.peer_class][ch.peer_channel].first + n;
}

}  // namespace maya::simulate
