// What the lanes of a warp do together.
#include <algorithm>

#include "decode/ptx_machine.h"

namespace maya::decode::ptx {

Value combine(Mode mode, const Type& type, const Value& x, const Value& y) {
  Value out;
  if (!y.known || type.is_float) return mode == Mode::exchange ? y : out;
  if (mode == Mode::exchange) return y;
  if (!x.known) return out;
  const int size = type.bytes;
  const std::uint64_t a = Thread::mask(x.bits, size), b = Thread::mask(y.bits, size);
  const bool less = type.is_signed ? Thread::extend(a, size) < Thread::extend(b, size) : a < b;
  out.known = true;
  switch (mode) {
    case Mode::add:
      out.bits = a + b;
      break;
    case Mode::min:
      out.bits = less ? a : b;
      break;
    case Mode::max:
      out.bits = less ? b : a;
      break;
    case Mode::and_:
      out.bits = a & b;
      break;
    case Mode::or_:
      out.bits = a | b;
      break;
    case Mode::xor_:
      out.bits = a ^ b;
      break;
    default:
      out.known = false;
  }
  out.bits = Thread::mask(out.bits, size);
  return out;
}

Value Machine::of(Lane& lane, const Argument& a) {
  thread_.thread_ = lane.place;
  thread_.registers_.swap(lane.registers);
  Value v = thread_.value(a);
  thread_.registers_.swap(lane.registers);
  return v;
}

void Machine::give(Lane& lane, const Argument& a, const Value& v) {
  if (a.kind == Argument::Kind::reg) lane.registers[static_cast<std::size_t>(a.index)] = v;
}

bool Machine::meet(std::size_t first, std::size_t last) {
  std::size_t at = program_.code.size();
  for (std::size_t i = first; i < last; ++i) {
    if (lanes_[i].where == Where::done) continue;
    if (lanes_[i].where != Where::at_warp) return false;
    if (at == program_.code.size()) at = lanes_[i].at;
    if (lanes_[i].at != at) return false;
  }
  const Instruction& in = program_.code[at];
  if (in.code == Code::shfl || in.code == Code::shuffle)
    shuffle(in, first, last);
  else if (in.code == Code::vote)
    vote(in, first, last);
  else if (in.code == Code::redux)
    reduce(in, first, last);
  for (std::size_t i = first; i < last; ++i) {
    if (lanes_[i].where == Where::done) continue;
    ++lanes_[i].at;
    lanes_[i].where = Where::running;
  }
  return true;
}

// shfl.sync d|p, a, b, c, mask: PTX manual, "shfl.sync", its own pseudo code.
void Machine::shuffle(const Instruction& in, std::size_t first, std::size_t last) {
  const Argument* a = in.arguments;
  std::vector<Value> sources(last - first);
  for (std::size_t i = first; i < last; ++i)
    if (lanes_[i].where != Where::done) sources[i - first] = of(lanes_[i], a[1]);
  std::vector<Value> results(last - first), inside(last - first);
  for (std::size_t i = first; i < last; ++i) {
    if (lanes_[i].where == Where::done) continue;
    const auto lane = static_cast<std::uint32_t>(i - first);
    Value by = of(lanes_[i], a[2]), bounds = of(lanes_[i], a[3]);
    if (!by.known || !bounds.known || in.argument_count < 5) continue;
    const auto b = static_cast<std::uint32_t>(by.bits & 31);
    const auto clamp = static_cast<std::uint32_t>(bounds.bits & 31);
    const auto segment = static_cast<std::uint32_t>(bounds.bits >> 8 & 31);
    const std::uint32_t most = (lane & segment) | (clamp & ~segment & 31);
    const std::uint32_t least = lane & segment;
    std::uint32_t from = 0;
    bool good = false;
    switch (in.mode) {
      case Mode::up:
        from = lane - b;
        good = static_cast<std::int32_t>(from) >= static_cast<std::int32_t>(most);
        break;
      case Mode::down:
        from = lane + b;
        good = from <= most;
        break;
      case Mode::butterfly:
        from = lane ^ b;
        good = from <= most;
        break;
      default:
        from = least | (b & ~segment & 31);
        good = from <= most;
    }
    if (!good) from = lane;
    if (from < sources.size()) results[lane] = sources[from];
    results[lane].root = -1;
    inside[lane] = Value{good ? 1u : 0u, true, false, -1};
  }
  for (std::size_t i = first; i < last; ++i) {
    if (lanes_[i].where == Where::done) continue;
    give(lanes_[i], a[0], results[i - first]);
    if (a[0].second >= 0)
      lanes_[i].registers[static_cast<std::size_t>(a[0].second)] = inside[i - first];
  }
}

// vote.sync.all.pred p, q, mask; vote.sync.ballot.b32 d, q, mask
void Machine::vote(const Instruction& in, std::size_t first, std::size_t last) {
  std::uint64_t ballot = 0, voters = 0;
  bool known = in.argument_count == 3;
  for (std::size_t i = first; i < last; ++i) {
    if (lanes_[i].where == Where::done) continue;
    Value q = of(lanes_[i], in.arguments[1]);
    known &= q.known;
    voters |= std::uint64_t{1} << (i - first);
    ballot |= (q.bits & 1) << (i - first);
  }
  Value out;
  out.known = known;
  out.bits = in.mode == Mode::any       ? ballot != 0
             : in.mode == Mode::all     ? ballot == voters
             : in.mode == Mode::uniform ? ballot == voters || ballot == 0
                                        : ballot;
  if (in.mode == Mode::none) out.known = false;
  for (std::size_t i = first; i < last; ++i)
    if (lanes_[i].where != Where::done) give(lanes_[i], in.arguments[0], out);
}

// redux.sync.add.s32 d, a, mask
void Machine::reduce(const Instruction& in, std::size_t first, std::size_t last) {
  Value out;
  bool begun = false;
  for (std::size_t i = first; i < last; ++i) {
    if (lanes_[i].where == Where::done) continue;
    Value v = of(lanes_[i], in.arguments[1]);
    out = begun ? combine(in.mode, in.type, out, v) : v;
    begun = true;
  }
  if (in.type.is_float || in.argument_count != 3) out.known = false;
  out.root = -1;
  for (std::size_t i = first; i < last; ++i)
    if (lanes_[i].where != Where::done) give(lanes_[i], in.arguments[0], out);
}

}  // namespace maya::decode::ptx
