// Infers the process grid of a job of which only some ranks were recorded.
//
// A recorded communicator has a size and the positions of its recorded members, but NCCL does not
// know the ranks of the other members. Training jobs arrange their ranks in a grid: rank =
// Σ coordinate × stride, where the stride of an axis is the product of the sizes of the axes inside
// it. The members of a communicator differ in the coordinates of one axis (tensor, data, pipeline
// …) or of several. So the axes are communicator sizes whose product is the size of the job. Their
// order must agree with the position of every recorded member. If several orders do, axes with more
// collective calls are placed inside and axes with messages (pipelines) outside, which is the usual
// arrangement.
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
  bool messages{};  // its ranks exchange messages: they are pipeline stages with different work
};

class Grid {
 public:
  // Returns nullopt if every rank was recorded or if the recorded positions fit no grid. In
  // `communicators` the rank of a member that was not recorded is -1.
  static std::optional<Grid> find(std::span<const Member> members,
                                  std::span<const job::Communicator> communicators,
                                  std::int32_t world_size);

  // The ranks of the members of a communicator, or empty if no combination of axes has its size and
  // its `known` members at their positions.
  std::vector<std::int32_t> members_of(std::size_t communicator,
                                       const std::vector<std::int32_t>& known) const;

  // The one of `recorded` (ascending) whose recording `rank` uses. It has the same coordinate on
  // every axis with messages if possible, then on most other axes, then it is the nearest one
  // below.
  std::int32_t stand_in(std::int32_t rank, std::span<const std::int32_t> recorded) const;

  const std::vector<Axis>& axes() const { return axes_; }
  std::string text() const;  // "8 × 4 × 16"

 private:
  std::int32_t at(const Axis& axis, std::int32_t rank) const {
    return rank / axis.stride % axis.size;
  }

  std::vector<Axis> axes_;     // innermost first
  std::vector<int> own_axis_;  // per communicator: the axis that it is, or -1
};

}  // namespace maya::collate
