// Which earlier record a record means: the event that a wait is for, the tensor that is given back.
//
// In another order of a stage's blocks, "the third tensor that a forward pass kept" is still what
// the third backward pass gives back. So the records that make events or tensors are sorted into
// families, one for those that the same records refer to, and a reference is the number of its
// target within the family, as a function of its own number within the family. Where that differs
// between stages, but what is meant is always so many of the family back (the last message that was
// sent), that distance is the reference.
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
  // Family of a record of the given recording; no_link for others.
  std::uint32_t family(std::size_t recording, std::uint32_t record) const;
  std::size_t families() const { return families_.size(); }
  // All recordings agree on what the family's references mean.
  bool consistent(std::uint32_t family) const { return families_[family].rule != Rule::none; }
  bool of_tensors(std::uint32_t family) const { return families_[family].tensors; }
  // Target of the n-th reference in a family, when `made` targets exist. no_link: there is none.
  std::uint32_t target(std::uint32_t family, std::uint32_t n, std::uint32_t made) const;
  // What the tensor was asked for with: the least that any tensor of its place got.
  std::uint64_t bytes(std::size_t recording, std::uint32_t record) const;

 private:
  enum class Rule : std::uint8_t { number, distance, none };
  struct Family {
    bool tensors{};
    Rule rule{Rule::number};
    std::vector<std::uint32_t> numbers;  // of targets, in the longest of the recordings
    std::uint32_t distance{};
  };

  std::vector<std::vector<std::uint32_t>> site_of_, link_of_;  // by recording, record; or no_link
  std::vector<std::uint32_t> family_of_site_;
  std::vector<std::uint64_t> bytes_of_site_;
  std::vector<Family> families_;
};

}  // namespace maya::collate
