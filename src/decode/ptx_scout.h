// Which threads of a launch store anything.
//
// Triton gives a program a thousand lanes where a sequence of an engine has one token: nearly all
// of them compute addresses and store nothing. Where threads go their own ways (no meetings, shared
// memory or atomics), a few instructions decide that: those that the predicates of stores and
// branches follow from. They are run first, and a thread that stores nothing is left at that.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/ptx.h"

namespace maya::decode::ptx {

class Scout {
 public:
  Scout() = default;
  explicit Scout(const Program& program);
  // Whether it is worth while: threads are independent, and few instructions decide.
  bool helps() const { return !next_.empty(); }
  // The first instruction from this one on that decides; the program's length: none.
  std::size_t next(std::size_t at) const { return next_[at]; }

 private:
  std::vector<std::uint32_t> next_;
};

}  // namespace maya::decode::ptx
