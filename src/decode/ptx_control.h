// Which branches of a program decide whether an instruction is run.
//
// The instruction after which the two ways of a branch are one again is its join (its immediate
// postdominator). What lies on the ways up to there depends on the branch; what comes behind does
// not.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/ptx.h"

namespace maya::decode::ptx {

class Control {
 public:
  explicit Control(const Program& program);
  // False: some instruction never leads to the end, or jumps somewhere unknown.
  bool good() const { return good_; }
  // The program's length: the ways meet only at its end.
  std::uint32_t join(std::size_t branch) const { return join_[branch]; }
  const std::vector<std::uint32_t>& deciding(std::size_t instruction) const {
    return deciding_[instruction];
  }
  // Where an instruction goes if it does not go on to the next one; the end where it has no way.
  static bool conditional(const Instruction& in) {
    return in.predicate >= 0 && (in.code == Code::branch || in.code == Code::exit);
  }

 private:
  std::vector<std::uint32_t> ways(std::size_t at) const;
  void find_joins();

  const Program& program_;
  std::uint32_t end_;
  std::vector<std::uint32_t> join_;
  std::vector<std::vector<std::uint32_t>> deciding_;
  bool good_{true};
};

}  // namespace maya::decode::ptx
