// Which kernel parameters the stores of a program can reach, whatever its data: parameters flow
// from instruction to instruction through registers, and a store writes to those that flow into its
// address.
#include <algorithm>

#include "decode/ptx.h"

namespace maya::decode::ptx {
namespace {

constexpr std::size_t most_parameters = 64;

class Flow {
 public:
  explicit Flow(const Program& program)
      : program_(program), reached_(static_cast<std::size_t>(std::max(program.registers, 0))) {
    // Loops carry pointers backwards: until nothing changes.
    while (pass()) {
    }
  }

  std::uint64_t into(const Argument& a) const {
    std::uint64_t set = of(a.index, a.kind);
    if (a.parameter >= 0 && static_cast<std::size_t>(a.parameter) < most_parameters)
      set |= std::uint64_t{1} << a.parameter;
    if (a.kind == Argument::Kind::list && a.index >= 0 &&
        static_cast<std::size_t>(a.index) < program_.lists.size())
      for (const Argument& item : program_.lists[static_cast<std::size_t>(a.index)])
        set |= into(item);
    return set;
  }

 private:
  std::uint64_t of(std::int32_t index, Argument::Kind kind) const {
    bool is_register = kind == Argument::Kind::reg || kind == Argument::Kind::memory;
    if (!is_register || index < 0 || static_cast<std::size_t>(index) >= reached_.size()) return 0;
    return reached_[static_cast<std::size_t>(index)];
  }

  bool add(const Argument& a, std::uint64_t set) {
    if (a.kind == Argument::Kind::list) {
      bool changed = false;
      if (a.index >= 0 && static_cast<std::size_t>(a.index) < program_.lists.size())
        for (const Argument& item : program_.lists[static_cast<std::size_t>(a.index)])
          changed |= add(item, set);
      return changed;
    }
    if (a.kind != Argument::Kind::reg || a.index < 0 ||
        static_cast<std::size_t>(a.index) >= reached_.size())
      return false;
    std::uint64_t& mine = reached_[static_cast<std::size_t>(a.index)];
    if ((mine | set) == mine) return false;
    mine |= set;
    return true;
  }

  bool pass() {
    bool changed = false;
    for (const Instruction& in : program_.code) {
      // What comes from memory is data; an address would have to be a table of pointers.
      if (in.argument_count < 2 || in.code == Code::load_global || in.code == Code::load_other ||
          in.code == Code::store_global || in.code == Code::store_other ||
          in.code == Code::atomic_global)
        continue;
      std::uint64_t set = 0;
      for (int i = 1; i < in.argument_count; ++i) set |= into(in.arguments[i]);
      if (set != 0) changed |= add(in.arguments[0], set);
    }
    return changed;
  }

  const Program& program_;
  std::vector<std::uint64_t> reached_;
};

}  // namespace

std::vector<bool> read_only_parameters(const Program& program) {
  if (program.parameters.size() > most_parameters || program.unknown_opcodes > 0) return {};
  Flow flow(program);
  std::uint64_t written = 0;
  for (const Instruction& in : program.code) {
    if (in.code == Code::call) return {};
    if (in.code != Code::store_global && in.code != Code::atomic_global) continue;
    const Argument& memory =
        in.arguments[0].kind == Argument::Kind::memory ? in.arguments[0] : in.arguments[1];
    std::uint64_t reached = flow.into(memory);
    // Through a table of pointers: what is written lies behind them, not behind a parameter. The
    // owner of the values looks for such tables (session/execution.h).
    if (reached == 0 && in.bytes > 0 && memory.index >= 0) continue;
    if (reached == 0) return {};  // through a tensor map: anything
    written |= reached;
  }
  std::vector<bool> result(program.parameters.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = ((written >> i) & 1) == 0;
  return result;
}

}  // namespace maya::decode::ptx
