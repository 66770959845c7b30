// Which earlier record a record means: the event that a wait is for, the tensor that is given back.
//
// In another order of a stage's blocks, "the third tensor that a forward pass kept" is still what
// the third backward pass gives back. So the records that make events or tensors are sorted into
// families: events by the work they stand for, tensors by their place in their block. A reference
// is the number of its target within the family, as a function of its own number among the
// references to the family. Where that function is the same for two stages, it holds for those
// between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collate/blocks.h"
#include "maya/trace.h"

namespace maya::collate {

inline constexpr std::uint32_t no_link = 0xffffffff;

class Links {
 public:
  // `recordings` are of two stages or more that do the same in different orders.
  Links(std::span<const trace::Recording* const> recordings, std::span<const Blocks* const> blocks);

  // The record that a record of the given recording refers to, or no_link.
  std::uint32_t link(std::size_t recording, std::uint32_t record) const {
    return link_of_[recording][record];
  }
  // Family of a record that makes an event or a tensor.
  std::uint32_t family(std::size_t recording, std::uint32_t record) const {
    return family_of_[recording][record];
  }
  // Number within the family that the n-th reference to it means; no_link if the recordings do not
  // agree.
  std::uint32_t target(std::uint32_t family, std::uint32_t n) const;
  // What a tensor was asked for with: the least that any of its family got.
  std::uint64_t bytes(std::uint32_t family) const { return families_[family].bytes; }

 private:
  struct Family {
    bool agreed{true};
    std::vector<std::uint32_t> numbers;  // of targets, in the longest of the recordings
    std::uint64_t bytes{UINT64_MAX};
  };

  void count_references(std::size_t recordings);

  std::vector<std::vector<std::uint32_t>> family_of_, link_of_;  // by recording, record
  std::vector<Family> families_;
};

}  // namespace maya::collate
