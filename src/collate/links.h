// Links records to the earlier records they refer to: a wait to the event it waits for, a release
// to the tensor that is released.
//
// If the blocks of a stage run in another order, the third backward pass still releases the third
// tensor that a forward pass kept. So the records that create events or tensors are grouped into
// families: events by the work they follow, tensors by their position in their block. The n-th
// reference to a family refers to the f(n)-th member of the family. If f is the same for two
// stages, it is used for the stages between them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collate/blocks.h"
#include "maya/trace.h"

namespace maya::collate {

inline constexpr std::uint32_t no_link = 0xffffffff;

class Links {
 public:
  // `recordings` are of two or more stages that do the same work in different orders.
  Links(std::span<const trace::Recording* const> recordings, std::span<const Blocks* const> blocks);

  // The record that a record of the given recording refers to, or no_link.
  std::uint32_t link(std::size_t recording, std::uint32_t record) const {
    return link_of_[recording][record];
  }
  // The family of a record that creates an event or a tensor.
  std::uint32_t family(std::size_t recording, std::uint32_t record) const {
    return family_of_[recording][record];
  }
  // The member of the family that the n-th reference refers to; no_link if the recordings do not
  // agree.
  std::uint32_t target(std::uint32_t family, std::uint32_t n) const;
  // The requested size of the tensors of a family: the smallest block that any of them got.
  std::uint64_t bytes(std::uint32_t family) const { return families_[family].bytes; }

 private:
  struct Family {
    bool agreed{true};
    std::vector<std::uint32_t> numbers;  // targets by number of the reference, longest recording
    std::uint64_t bytes{UINT64_MAX};
  };

  void count_references(std::size_t recordings);

  std::vector<std::vector<std::uint32_t>> family_of_, link_of_;  // by recording, record
  std::vector<Family> families_;
};

// The event that each wait is for, by the number of the event's record. Waits between the same two
// messages are sorted, so that their order does not matter.
std::vector<std::pair<std::uint32_t, std::int64_t>> waits_of(const trace::Recording& recording);

}  // namespace maya::collate
