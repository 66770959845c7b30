// Which threads of a launch store anything.
//
// Triton gives a program a thousand lanes where a sequence of an engine has one token: nearly all
// of them compute addresses and store nothing. Where threads go their own ways (no meetings, shared
// memory or atomics), a few instructions decide that: those that the predicates of stores follow
// from, and of branches that lead to them. They are run first, and a thread that stores nothing is
// left at that.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "decode/ptx.h"

namespace maya::decode::ptx {

// Which threads of a block stored nothing, and the values that this followed from beside the
// launch's arguments: an engine's next step mostly loads the same ones.
struct Silence {
  struct Load {
    std::uint64_t address{}, bits{};
    int bytes{};
    bool known{};
  };
  std::uint64_t launch{};  // a hash of geometry and arguments
  std::vector<Load> loads;
  std::vector<bool> threads;
};

class Scout {
 public:
  Scout() = default;
  explicit Scout(const Program& program);
  // Whether it is worth while: threads are independent, and few instructions decide.
  bool helps() const { return !next_.empty(); }
  // The first instruction from this one on that decides; the program's length: none.
  std::size_t next(std::size_t at) const { return next_[at]; }
  // Those that the deciding instructions use.
  const std::vector<std::uint32_t>& registers() const { return registers_; }

  // By block, of launches before; null: too many. Launches of a kernel come one at a time.
  Silence* remembered(std::uint32_t block) const {
    constexpr std::size_t most = 4096;
    if (before_.size() >= most && before_.find(block) == before_.end()) return nullptr;
    return &before_[block];
  }

 private:
  std::vector<std::uint32_t> next_, registers_;
  mutable std::unordered_map<std::uint32_t, Silence> before_;
};

}  // namespace maya::decode::ptx
