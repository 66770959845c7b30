#include "decode/ptx_scout.h"

#include <algorithm>

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
  explicit Slice(const Program& program)
      : program_(program),
        wanted_(static_cast<std::size_t>(std::max(program.registers, 0))),
        in_(program.code.size()) {
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const Instruction& one = program.code[i];
      if (one.code != Code::store_global && one.code != Code::branch && one.code != Code::exit)
        continue;
      in_[i] = true;
      want(one.predicate);
    }
    while (pass()) {
    }
  }
  const std::vector<bool>& instructions() const { return in_; }

 private:
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
      if (in_[i] || one.code == Code::store_global || one.argument_count == 0 ||
          !gives(one.arguments[0]))
        continue;
      in_[i] = changed = true;
      want(one.predicate);
      for (int at = 1; at < one.argument_count; ++at) want(one.arguments[at]);
    }
    return changed;
  }

  const Program& program_;
  std::vector<bool> wanted_, in_;
};

}  // namespace

Scout::Scout(const Program& program) {
  if (!std::all_of(program.code.begin(), program.code.end(), independent)) return;
  const Slice slice(program);
  const auto deciding = std::count(slice.instructions().begin(), slice.instructions().end(), true);
  if (2 * static_cast<std::size_t>(deciding) > program.code.size()) return;
  next_.resize(program.code.size() + 1, static_cast<std::uint32_t>(program.code.size()));
  for (std::size_t i = program.code.size(); i-- > 0;)
    next_[i] = slice.instructions()[i] ? static_cast<std::uint32_t>(i) : next_[i + 1];
}

}  // namespace maya::decode::ptx
