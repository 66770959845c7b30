// Whether anything that a program stores can be known: values are followed forward from parameters,
// constants and loads to stores, and end at floating-point arithmetic.
#include <algorithm>

#include "decode/ptx_machine.h"

namespace maya::decode::ptx {
namespace {

class Known {
 public:
  Known(const Program& program, bool loads)
      : program_(program),
        loads_(loads),
        possible_(static_cast<std::size_t>(std::max(program.registers, 0))) {
    while (pass()) {
    }
  }

  bool stores() const {
    return std::any_of(program_.code.begin(), program_.code.end(), [this](const Instruction& in) {
      if (!guard(in)) return false;
      if (in.code == Code::store_global) return in.bytes > 0 && some(in.arguments[1]);
      return in.code == Code::atomic_global && loads_ && !in.type.is_float;
    });
  }

 private:
  bool of(std::int32_t index) const {
    return index >= 0 && static_cast<std::size_t>(index) < possible_.size() &&
           possible_[static_cast<std::size_t>(index)];
  }
  bool guard(const Instruction& in) const { return in.predicate < 0 || of(in.predicate); }

  const std::vector<Argument>& items(const Argument& a) const {
    return program_.lists[static_cast<std::size_t>(a.index)];
  }
  bool all(const Argument& a) const {
    if (a.kind == Argument::Kind::list)
      return std::all_of(items(a).begin(), items(a).end(),
                         [this](const Argument& item) { return all(item); });
    if (a.kind == Argument::Kind::reg || (a.kind == Argument::Kind::memory && a.index >= 0))
      return of(a.index);
    return a.kind == Argument::Kind::immediate || a.kind == Argument::Kind::special ||
           a.kind == Argument::Kind::memory;
  }
  bool some(const Argument& a) const {
    if (a.kind == Argument::Kind::list)
      return std::any_of(items(a).begin(), items(a).end(),
                         [this](const Argument& item) { return all(item); });
    return all(a);
  }

  bool add(const Argument& a) {
    bool changed = false;
    if (a.kind == Argument::Kind::list) {
      for (const Argument& item : items(a)) changed |= add(item);
      return changed;
    }
    for (std::int32_t index : {a.kind == Argument::Kind::reg ? a.index : -1, a.second})
      if (index >= 0 && !of(index)) changed = possible_[static_cast<std::size_t>(index)] = true;
    return changed;
  }

  bool gives(const Instruction& in) const {
    switch (in.code) {
      case Code::load_parameter:
      case Code::elect:
        return true;
      case Code::load_global:
        return loads_ && all(in.arguments[1]);
      case Code::load_other:
        return in.space == Space::shared && shared_;
      case Code::atomic_global:
      case Code::atomic_other:
        return loads_ && !in.type.is_float;
      case Code::selp:
        return all(in.arguments[3]) && (all(in.arguments[1]) || all(in.arguments[2]));
      case Code::shfl:
      case Code::shuffle:
      case Code::vote:
      case Code::redux:
        return all(in.arguments[1]);
      case Code::float_op:
      case Code::unknown_result:
      case Code::sad:
      case Code::mma:
      case Code::wgmma:
      case Code::wait:
      case Code::call:
        return false;
      default:
        for (int i = 1; i < in.argument_count; ++i)
          if (!all(in.arguments[i])) return false;
        return in.exact && in.argument_count > 1;
    }
  }

  bool pass() {
    bool changed = false;
    for (const Instruction& in : program_.code) {
      if (!guard(in)) continue;
      if ((in.code == Code::store_other && in.space == Space::shared && some(in.arguments[1])) ||
          in.code == Code::copy_async || in.code == Code::atomic_other) {
        const bool gives_shared = in.code == Code::store_other || loads_;
        changed |= gives_shared && !shared_;
        shared_ |= gives_shared;
      }
      if (in.code == Code::store_global || in.code == Code::store_other || in.argument_count == 0)
        continue;
      if (in.arguments[0].kind != Argument::Kind::memory && gives(in))
        changed |= add(in.arguments[0]);
    }
    return changed;
  }

  const Program& program_;
  bool loads_;
  bool shared_{};
  std::vector<bool> possible_;
};

}  // namespace

Knowable knowable(const Program& program) {
  return {Known(program, true).stores(), Known(program, false).stores()};
}

}  // namespace maya::decode::ptx
