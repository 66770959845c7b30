// Which loads and bounds of a program decide how often its loops run: the values behind the
// predicates of its branches, followed backwards from register to register.
#include <algorithm>

#include "decode/ptx.h"

namespace maya::decode::ptx {
namespace {

class Slice {
 public:
  explicit Slice(Program& program)
      : program_(program), needed_(static_cast<std::size_t>(std::max(program.registers, 0))) {}

  void need(std::int32_t index) {
    if (index >= 0 && static_cast<std::size_t>(index) < needed_.size()) needed_[index] = true;
  }

  // Values that loops carry flow backwards too: until nothing changes.
  void close() {
    while (pass()) {
    }
  }

  bool writes(const Instruction& in) const { return in.argument_count > 0 && any(in.arguments[0]); }

 private:
  bool any(const Argument& a) const {
    if (a.kind == Argument::Kind::list)
      return std::any_of(program_.lists[a.index].begin(), program_.lists[a.index].end(),
                         [this](const Argument& item) { return any(item); });
    if (a.kind != Argument::Kind::reg || a.index < 0) return false;
    return needed_[a.index] || (a.second >= 0 && needed_[a.second]);
  }

  bool add(const Argument& a) {
    if (a.kind == Argument::Kind::list) {
      bool changed = false;
      for (const Argument& item : program_.lists[a.index]) changed |= add(item);
      return changed;
    }
    if (a.kind != Argument::Kind::reg || a.index < 0 || needed_[a.index]) return false;
    return needed_[a.index] = true;
  }

  bool pass() {
    bool changed = false;
    for (const Instruction& in : program_.code) {
      // What a load gives depends on memory, not on the registers of its address.
      if (in.code == Code::load_global || in.code == Code::load_other ||
          in.code == Code::load_parameter || in.argument_count < 2 || !writes(in))
        continue;
      for (int i = 1; i < in.argument_count; ++i) changed |= add(in.arguments[i]);
    }
    return changed;
  }

  Program& program_;
  std::vector<bool> needed_;
};

// What stands straight on from there, before anything moves data. A call: how assertions are
// compiled (indices of Inductor's kernels are checked so); no launch that goes on has come that
// way. The end: blocks for which a grid has too many (those of vLLM's experts, whose number is in
// memory).
enum class Ahead : std::uint8_t { work, failure, end };
Ahead ahead(const Program& program, std::size_t at) {
  constexpr int furthest = 64;
  for (int i = 0; i < furthest && at < program.code.size(); ++i) {
    const Instruction& in = program.code[at];
    if (in.code == Code::exit && in.predicate < 0)
      return in.assertion != 0 ? Ahead::failure : Ahead::end;
    if (in.code == Code::exit || in.code == Code::call || in.code == Code::load_global ||
        in.code == Code::store_global || in.code == Code::atomic_global ||
        in.code == Code::branch_indexed)
      return Ahead::work;
    if (in.code != Code::branch)
      ++at;
    else if (in.predicate >= 0 || in.target < 0)
      return Ahead::work;
    else
      at = static_cast<std::size_t>(in.target);
  }
  return at >= program.code.size() ? Ahead::end : Ahead::work;
}

std::int8_t which(bool taken, bool other) {
  return static_cast<std::int8_t>(taken == other ? 0 : taken ? 1 : -1);
}

// Whether some jump leads from behind the instruction to it or before it.
bool in_loop(const Program& program, std::size_t at) {
  for (std::size_t i = at; i < program.code.size(); ++i) {
    const Instruction& in = program.code[i];
    if (in.code == Code::branch && in.target >= 0 && static_cast<std::size_t>(in.target) <= at)
      return true;
  }
  return false;
}

void mark_ways(Program& program) {
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    Instruction& in = program.code[i];
    if (in.code != Code::branch || in.predicate < 0 || in.target < 0) continue;
    const Ahead taken = ahead(program, static_cast<std::size_t>(in.target));
    const Ahead other = ahead(program, i + 1);
    in.assertion = which(taken == Ahead::failure, other == Ahead::failure);
    if (!in_loop(program, i)) in.leaves = which(taken == Ahead::end, other == Ahead::end);
  }
}

}  // namespace

void mark_steering(Program& program) {
  Slice branches(program), loops(program);
  mark_ways(program);
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& in = program.code[i];
    if (in.code != Code::branch || in.predicate < 0 || in.assertion != 0) continue;
    branches.need(in.predicate);
    if (in.target >= 0 && static_cast<std::size_t>(in.target) <= i) loops.need(in.predicate);
  }
  branches.close();
  loops.close();
  for (Instruction& in : program.code) {
    in.steers = in.code == Code::load_global && branches.writes(in);
    in.bounds_loop = in.code == Code::min && loops.writes(in);
  }
}

}  // namespace maya::decode::ptx
