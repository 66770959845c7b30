// Folds ranks with identical work into classes.
//
// The classes are the coarsest partition of the ranks with these properties (an equitable
// partition):
//  - Members have equal fingerprints.
//  - For each slot, the communicators of the members have the same size, the same distribution over
//    nodes, and the same set of (class, slot) pairs as members.
//  - For each channel, the peers of the members are in the same class and use the same channel
//    number.
//
// The partition is found by refinement: colour the ranks by fingerprint, recolour each rank by the
// colours of its partners, and repeat until no class splits. Simulating one member of each class is
// then exact, because a rendezvous depends only on the arrival of (class, slot) pairs.
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

// The channels of one member, with the class and channel of each peer. `class_of_rank` has an entry
// for every rank of the job.
std::vector<job::Channel> channels_of(const Member& member, std::span<const Member> members,
                                      std::span<const job::Communicator> communicators,
                                      std::span<const std::uint32_t> class_of_rank);

}  // namespace maya::collate
