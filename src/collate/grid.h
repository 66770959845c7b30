// The grid of processes behind a job of which only some ranks were recorded.
//
// A communicator knows its size and the places of its recorded members, not who the others are:
// NCCL is never told. But training jobs cut their ranks into a grid: rank = Σ coordinate × stride,
// where an axis's stride is the product of the sizes of the axes inside it, and a communicator's
// members differ in the coordinates of one axis (tensor, data, pipeline …) or of several. So the
// sizes that multiply up to the job are axes, and of their orders the one is taken that every
// recorded member's place agrees with; where several do, the axes whose collectives are called more
// often are inside, and those that exchange messages (pipelines) outside, as everybody arranges
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collate/communicators.h"

namespace maya::collate {

struct Axis {
  std::int32_t size{}, stride{1};
  bool messages{};  // its ranks send to each other: they are stages, and do different things
};

class Grid {
 public:
  // nullopt where nothing is missing, or the recorded places fit no grid. `communicators` hold -1
  // for members that were not recorded.
  static std::optional<Grid> find(std::span<const Member> members,
                                  std::span<const job::Communicator> communicators,
                                  std::int32_t world_size);

  // Members of the communicator with that index, or empty if no axes give its size and places.
  std::vector<std::int32_t> members_of(std::size_t communicator,
                                       const std::vector<std::int32_t>& known) const;

  // The one of `recorded` (ascending) that does what `rank` would: at the same place of every axis
  // with messages if there is one, then of most others, then the nearest below.
  std::int32_t stand_in(std::int32_t rank, std::span<const std::int32_t> recorded) const;

  const std::vector<Axis>& axes() const { return axes_; }
  std::string text() const;  // "8 × 4 × 16"

 private:
  std::int32_t at(const Axis& axis, std::int32_t rank) const {
    return rank / axis.stride % axis.size;
  }

  std::vector<Axis> axes_;     // inside first
  std::vector<int> own_axis_;  // per communicator: the axis it was taken for, or -1
};

}  // namespace maya::collate
