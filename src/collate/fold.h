// Ranks that do the same become one class.
//
// The classes are the coarsest partition of the ranks with two properties (an equitable partition):
//  - members have equal fingerprints;
//  - slot by slot, members' communicators have the same size and spread over nodes, and meet the
//  same
//    set of (class, slot); channel by channel, members' peers are of the same class and know them
//    by the same channel number.
// It is found by refinement: colour the ranks by fingerprint, recolour each by what its partners'
// colours are, until nothing splits. Simulating one member of each class is then exact: a
// rendezvous depends on the arrival of (class, slot) pairs alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collate/communicators.h"

namespace maya::collate {

struct Fold {
  std::vector<std::uint32_t> class_of;        // per recorded member
  std::vector<std::uint32_t> representative;  // per class: index of its first member
};

Fold fold(std::span<const Member> members, std::span<const job::Communicator> communicators,
          bool merge, int gpus_per_node);

// Channels of one member in terms of classes. `class_of_rank` covers all ranks.
std::vector<job::Channel> channels_of(const Member& member, std::span<const Member> members,
                                      std::span<const job::Communicator> communicators,
                                      std::span<const std::uint32_t> class_of_rank);

}  // namespace maya::collate
