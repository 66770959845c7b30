#include "decode/ptx_scout.h"

#include <algorithm>

#include "decode/ptx_control.h"

namespace maya::decode::ptx {
namespace {

bool independent(const Instruction& in) {
  switch (in.code) {
    case Code::load_other:
    case Code::store_other:
    case Code::atomic_global:
    case Code::atomic_other:
    case Code::copy_async:
    case Code::bulk_expect:
    case Code::branch_indexed:
    case Code::call:
    case Code::wait:
    case Code::elect:
    case Code::shfl:
    case Code::shuffle:
    case Code::vote:
    case Code::redux:
    case Code::warp_barrier:
    case Code::barrier:
    case Code::mma:
    case Code::wgmma:
    case Code::tcgen_mma:
      return false;
    default:
      return !in.ordered;
  }
}

class Slice {
 public:
  Slice(const Program& program, const Control& control)
      : program_(program),
        control_(control),
        wanted_(static_cast<std::size_t>(std::max(program.registers, 0))),
        in_(program.code.size()) {
    for (std::size_t i = 0; i < in_.size(); ++i)
      if (program.code[i].code == Code::store_global) add(i);
    while (pass()) {
    }
  }
  const std::vector<bool>& instructions() const { return in_; }
  // What its instructions read or write.
  std::vector<std::uint32_t> registers() const {
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i]) out.push_back(static_cast<std::uint32_t>(i));
    return out;
  }

 private:
  // An instruction, and the branches that decide whether it is run.
  void add(std::size_t at) {
    if (in_[at]) return;
    in_[at] = true;
    want(program_.code[at].predicate);
    for (std::uint32_t branch : control_.deciding(at)) add(branch);
  }
  void want(std::int32_t index) {
    if (index >= 0 && static_cast<std::size_t>(index) < wanted_.size())
      wanted_[static_cast<std::size_t>(index)] = true;
  }
  void want(const Argument& a) {
    if (a.kind == Argument::Kind::list) {
      for (const Argument& item : program_.lists[static_cast<std::size_t>(a.index)]) want(item);
    } else if (a.kind == Argument::Kind::reg || a.kind == Argument::Kind::memory) {
      want(a.index);
    }
  }
  bool wanted(std::int32_t index) const {
    return index >= 0 && static_cast<std::size_t>(index) < wanted_.size() &&
           wanted_[static_cast<std::size_t>(index)];
  }
  bool gives(const Argument& a) const {
    if (a.kind == Argument::Kind::list) {
      const auto& items = program_.lists[static_cast<std::size_t>(a.index)];
      return std::any_of(items.begin(), items.end(),
                         [this](const Argument& i) { return gives(i); });
    }
    return (a.kind == Argument::Kind::reg && wanted(a.index)) || wanted(a.second);
  }
  bool pass() {
    bool changed = false;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const Instruction& one = program_.code[i];
      if (in_[i] || one.code == Code::store_global || one.code == Code::branch ||
          one.argument_count == 0 || !gives(one.arguments[0]))
        continue;
      changed = true;
      add(i);
      for (int at = 1; at < one.argument_count; ++at) want(one.arguments[at]);
    }
    return changed;
  }

  const Program& program_;
  const Control& control_;
  std::vector<bool> wanted_, in_;
};

}  // namespace

Scout::Scout(const Program& program) {
  if (!std::all_of(program.code.begin(), program.code.end(), independent)) return;
  const Control control(program);
  if (!control.good()) return;
  const Slice slice(program, control);
  const auto deciding = std::count(slice.instructions().begin(), slice.instructions().end(), true);
  if (2 * static_cast<std::size_t>(deciding) > program.code.size()) return;
  const auto end = static_cast<std::uint32_t>(program.code.size());
  std::vector<std::uint32_t> next(program.code.size() + 1, end);
  for (std::uint32_t i = 0; i < end; ++i) {
    // The ways of a branch that decides nothing are as good as its join.
    std::uint32_t at = i, steps = 0;
    while (at < end && !slice.instructions()[at]) {
      const Instruction& in = program.code[at];
      at = Control::conditional(in)  ? control.join(at)
           : in.code == Code::branch ? static_cast<std::uint32_t>(in.target)
           : in.code == Code::exit   ? end
                                     : at + 1;
      if (++steps > end) return;  // round and round
    }
    next[i] = at;
  }
  next_ = std::move(next);
  registers_ = slice.registers();
}

}  // namespace maya::decode::ptx
