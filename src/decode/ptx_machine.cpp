#include "decode/ptx_machine.h"

#include <algorithm>
#include <cstring>

#include "decode/ptx_floats.h"
#include "decode/repeats.h"

namespace maya::decode::ptx {

std::vector<Value> parameter_roots(const Program& program, const Launch& launch) {
  std::vector<Value> arguments(program.parameters.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    // A device address, as far as anybody can say.
    bool eight = program.parameters[i].bytes == 8;
    if (!eight || !launch.arguments || i >= launch.kernel->parameter_sizes.size()) continue;
    std::uint64_t word = 0;
    if (launch.kernel->parameter_sizes[i] == 8 && launch.arguments[i])
      std::memcpy(&word, launch.arguments[i], 8);
    bool device = launch.extent ? word > 0xffff && launch.extent(word) > 0
                                : program.parameters[i].pointer || word > 0xffffffff;
    if (device && i < max_roots) arguments[i].root = static_cast<std::int16_t>(i);
  }
  return arguments;
}

Machine::Machine(const Program& program, const Launch& launch, std::uint64_t budget,
                 const Scout* scout)
    : program_(program),
      launch_(launch),
      arguments_(parameter_roots(program, launch)),
      thread_(program, launch, arguments_, most_steps),
      global_(launch),
      scout_(scout != nullptr && scout->helps() ? scout : nullptr),
      budget_(budget) {
  thread_.counts_ = &ignored_;
  if (scout_ != nullptr) launch_hash_ = hash_of_launch(launch);
}

bool Machine::run(Effects& effects) {
  const auto& g = launch_.geometry;
  const std::uint64_t threads = std::uint64_t{g.block[0]} * g.block[1] * g.block[2];
  const std::uint64_t blocks = g.blocks();
  if (program_.unknown_opcodes > 0 || threads == 0 || threads > 1024 || blocks == 0 ||
      blocks > most_blocks)
    return false;
  lanes_.resize(threads);
  meets_blocks_ = std::any_of(
      program_.code.begin(), program_.code.end(),
      [](const Instruction& in) { return in.code == Code::atomic_global || in.ordered; });
  const bool good = run_some(blocks);
  effects.steps = steps_;
  if (good) global_.effects(effects);
  return good;
}

bool Machine::run_some(std::uint64_t blocks) {
  // Blocks that wait for others wait for those in front of them.
  constexpr std::uint64_t few = 4;
  if (meets_blocks_ || blocks <= 2 * few) {
    for (std::uint32_t i = 0; i < blocks; ++i)
      if (!run_block(i)) return false;
    return true;
  }
  // A few blocks first: where none of them writes anything known, the others hardly will.
  std::vector<std::uint32_t> probes;
  for (std::uint64_t i = 0; i < few; ++i) {
    probes.push_back(static_cast<std::uint32_t>(i * (blocks - 1) / (few - 1)));
    if (!run_block(probes.back())) return false;
  }
  if (!global_.wrote_known()) return false;
  // Those of the others that the limit allows.
  const std::uint64_t each = std::max<std::uint64_t>(1, steps_ / few * 5 / 4);
  const std::uint64_t affordable = (budget_ - std::min(steps_, budget_)) / each;
  const std::uint64_t stride = (blocks + affordable) / std::max<std::uint64_t>(1, affordable);
  for (std::uint64_t i = stride > 1 ? stride / 2 : 0; i < blocks;
       i += std::max<std::uint64_t>(1, stride)) {
    const auto block = static_cast<std::uint32_t>(i);
    if (std::find(probes.begin(), probes.end(), block) != probes.end()) continue;
    if (!run_block(block)) return false;
  }
  if (stride > 1) forget_outputs();
  return true;
}

// What the blocks that were not run write is not known.
void Machine::forget_outputs() {
  const std::vector<bool> read_only = read_only_parameters(program_);
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].root < 0 || (i < read_only.size() && read_only[i])) continue;
    std::uint64_t base = 0;
    std::memcpy(&base, launch_.arguments[i], 8);
    global_.forget(base);
  }
}

bool Machine::run_block(std::uint32_t block) {
  const auto& g = launch_.geometry;
  block_ = block;
  thread_.block_ = {block % g.grid[0], block / g.grid[0] % g.grid[1],
                    block / g.grid[0] / g.grid[1]};
  shared_.reset(std::min<std::uint64_t>(program_.shared_bytes + g.shared_bytes, 1 << 20));
  for (std::uint32_t i = 0; i < lanes_.size(); ++i)
    lanes_[i].place = {i % g.block[0], i / g.block[0] % g.block[1], i / g.block[0] / g.block[1]};
  if (scout_) find_silent(block);
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    lane.at = 0;
    lane.where = scout_ && silent_[i] ? Where::done : Where::running;
    if (lane.where == Where::running)
      lane.registers.assign(static_cast<std::size_t>(std::max(program_.registers, 0)), Value{});
  }
  for (;;) {
    for (Lane& lane : lanes_)
      if (lane.where == Where::running && !run_lane(lane)) return false;
    bool met = false;
    for (std::size_t first = 0; first < lanes_.size(); first += warp_size) {
      const std::size_t last = std::min(first + warp_size, lanes_.size());
      const bool waits = std::any_of(lanes_.begin() + static_cast<std::ptrdiff_t>(first),
                                     lanes_.begin() + static_cast<std::ptrdiff_t>(last),
                                     [](const Lane& lane) { return lane.where == Where::at_warp; });
      if (!waits) continue;
      if (!meet(first, last)) return false;
      met = true;
    }
    if (met) continue;
    bool any = false;
    for (Lane& lane : lanes_)
      if (lane.where == Where::at_block) {
        any = true;
        ++lane.at;
        lane.where = Where::running;
      }
    if (!any) return true;
  }
}

void Machine::find_silent(std::uint32_t block) {
  constexpr std::size_t most_loads = 16;
  Silence* before = scout_->remembered(block);
  auto same = [&](const Silence::Load& load) {
    ++steps_;
    const Value now = global_.load(load.address, load.bytes, block_, false);
    return now.known == load.known && (!now.known || now.bits == load.bits);
  };
  if (before != nullptr && before->launch == launch_hash_ &&
      before->threads.size() == lanes_.size() &&
      std::all_of(before->loads.begin(), before->loads.end(), same)) {
    silent_ = before->threads;
    return;
  }
  Silence now;
  now.launch = launch_hash_;
  noting_ = before != nullptr ? &now : nullptr;
  silent_.assign(lanes_.size(), false);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    silent_[i] = silent(lanes_[i]);
    if (now.loads.size() > most_loads) noting_ = nullptr;
  }
  if (noting_ != nullptr && steps_ <= most_steps) {
    now.threads = silent_;
    *before = std::move(now);
  } else if (before != nullptr) {
    before->launch = 0;
  }
  noting_ = nullptr;
}

void Machine::note_load(std::uint64_t address, int bytes, const Value& value) {
  for (const Silence::Load& load : noting_->loads)
    if (load.address == address && load.bytes == bytes) return;
  noting_->loads.push_back({address, value.bits, bytes, value.known});
}

bool Machine::silent(const Lane& lane) {
  thread_.thread_ = lane.place;
  scouted_.resize(static_cast<std::size_t>(std::max(program_.registers, 0)));
  for (std::uint32_t i : scout_->registers()) scouted_[i] = Value{};
  thread_.registers_.swap(scouted_);
  const auto& code = program_.code;
  bool silent = false;
  for (std::size_t at = scout_->next(0);;) {
    if (at >= code.size()) {
      silent = true;
      break;
    }
    if (++steps_ > most_steps) break;
    const Instruction& in = code[at];
    bool certain = true;
    if (in.predicate >= 0) {
      const Value& p = thread_.registers_[static_cast<std::size_t>(in.predicate)];
      certain = p.known;
      if (certain && ((p.bits & 1) != 0) == in.predicate_negated) {
        at = scout_->next(at + 1);
        continue;
      }
    }
    if (in.code == Code::store_global) break;
    if (in.code == Code::branch || in.code == Code::exit) {
      silent = certain && in.code == Code::exit;
      if (!certain || silent || in.target < 0) break;
      at = scout_->next(static_cast<std::size_t>(in.target));
      continue;
    }
    if (!step(in, certain)) break;
    at = scout_->next(at + 1);
  }
  thread_.registers_.swap(scouted_);
  return silent;
}

bool Machine::run_lane(Lane& lane) {
  thread_.thread_ = lane.place;
  thread_.registers_.swap(lane.registers);
  const auto& code = program_.code;
  bool good = true;
  for (;;) {
    if (lane.at >= code.size()) {
      lane.where = Where::done;
      break;
    }
    if (++steps_ > limit_) {
      good = false;
      break;
    }
    const Instruction& in = code[lane.at];
    bool certain = true;
    if (in.predicate >= 0) {
      const Value& p = thread_.registers_[static_cast<std::size_t>(in.predicate)];
      certain = p.known;
      if (certain && ((p.bits & 1) != 0) == in.predicate_negated) {
        ++lane.at;
        continue;
      }
    }
    const bool meeting = in.code == Code::shfl || in.code == Code::shuffle ||
                         in.code == Code::vote || in.code == Code::redux ||
                         in.code == Code::warp_barrier || in.code == Code::barrier;
    if (meeting || in.code == Code::exit || in.code == Code::branch) {
      good = certain && (in.code != Code::branch || in.target >= 0) &&
             (in.exact || in.code != Code::barrier);
      undecided_ |= !certain;
      if (!good) break;
      if (in.code == Code::branch) {
        lane.at = static_cast<std::size_t>(in.target);
        continue;
      }
      lane.where = in.code == Code::exit      ? Where::done
                   : in.code == Code::barrier ? Where::at_block
                                              : Where::at_warp;
      break;
    }
    if (good = step(in, certain); !good) break;
    ++lane.at;
  }
  thread_.registers_.swap(lane.registers);
  return good;
}

// Of a comparison with an unknown number: it differs, and it is above zero.
Value Machine::taken_for_granted(const Instruction& in) const {
  Value v;
  if (in.code != Code::setp || !in.exact || in.combine != 0 || in.arguments[0].second >= 0 ||
      in.type.predicate)
    return v;
  const Value x = thread_.value(in.arguments[1]), y = thread_.value(in.arguments[2]);
  if (x.known && y.known) return v;
  constexpr bool differs[] = {false, true}, above[] = {false, true, false, false, true, true};
  const int size = in.type.bytes;
  if (in.compare <= 1)
    v = {differs[in.compare], true};
  else if (in.type.is_signed && y.known && Thread::extend(y.bits, size) <= 0)
    v = {above[in.compare], true};
  else if (in.type.is_signed && x.known && Thread::extend(x.bits, size) <= 0)
    v = {!above[in.compare], true};
  return v;
}

void Machine::forget(const Argument& a) {
  thread_.set(a, Value{}, true);
  if (a.second >= 0) thread_.registers_[static_cast<std::size_t>(a.second)] = Value{};
}

bool Machine::step(const Instruction& in, bool certain) {
  switch (in.code) {
    case Code::load_global:
    case Code::load_other:
      return load(in, certain);
    case Code::store_global:
    case Code::store_other:
      return store(in, certain);
    case Code::atomic_global:
    case Code::atomic_other:
      return atomic(in, certain);
    case Code::copy_async:
      return copy(in, certain);
    case Code::branch_indexed:
    case Code::call:
    case Code::tcgen_mma:
    case Code::bulk_expect:
    case Code::wait:
      return false;
    case Code::float_op:
    case Code::unknown_result:
      if (in.floats != Float::none && certain) {
        const Argument* a = in.arguments;
        const Value from[] = {thread_.value(a[1]), thread_.value(a[2]), thread_.value(a[3])};
        thread_.set(a[0], float_result(in, from), true);
        return true;
      }
      forget(in.arguments[0]);
      return true;
    case Code::mma:
    case Code::wgmma:
    case Code::sad:
      forget(in.arguments[0]);
      return true;
    case Code::nop:
      return true;
    default:
      if (const Value taken = differ_ ? taken_for_granted(in) : Value{}; taken.known)
        thread_.set(in.arguments[0], taken, certain);
      else if (in.exact)
        thread_.step(in, certain);
      else
        forget(in.arguments[0]);
      return true;
  }
}

Value Machine::shared_address(const Argument& a) const {
  Value at;
  if (a.variable) {
    at.known = true;
    at.bits = static_cast<std::uint64_t>(a.value);
  } else if (a.index >= 0) {
    at = thread_.address(a);
    at.bits = Thread::mask(at.bits, 4);
  }
  return at;
}

bool Machine::load(const Instruction& in, bool certain) {
  const Argument& to = in.arguments[0];
  const int size = in.type.bytes;
  Value at;
  if (in.space == Space::global && in.arguments[1].index >= 0)
    at = thread_.address(in.arguments[1]);
  else if (in.space == Space::shared && !program_.opaque_shared)
    at = shared_address(in.arguments[1]);
  if (!certain || !at.known) {
    forget(to);
    return true;
  }
  if (in.ordered) global_.order(block_);
  auto element = [&](std::uint64_t i) {
    const std::uint64_t address = at.bits + i * static_cast<std::uint64_t>(size);
    Value v = in.space == Space::global ? global_.load(address, size, block_, in.ordered)
                                        : shared_.load(address, size);
    if (noting_ != nullptr) note_load(address, size, v);
    if (v.known && in.type.is_signed)
      v.bits = static_cast<std::uint64_t>(Thread::extend(v.bits, size));
    return v;
  };
  if (to.kind == Argument::Kind::list) {
    const auto& items = program_.lists[static_cast<std::size_t>(to.index)];
    for (std::size_t i = 0; i < items.size(); ++i) thread_.set(items[i], element(i), true);
  } else {
    thread_.set(to, element(0), true);
  }
  return true;
}

bool Machine::store(const Instruction& in, bool certain) {
  if (in.bytes < 0) return false;  // by the copy engine
  if (in.space == Space::other) return true;
  const bool shared = in.space == Space::shared;
  const Argument &to = in.arguments[0], &from = in.arguments[1];
  const int size = in.type.bytes;
  Value at = shared ? shared_address(to) : Value{};
  if (!shared && to.index >= 0) at = thread_.address(to);
  if (!at.known) {
    if (shared || at.root < 0) return false;
    std::uint64_t base = 0;
    std::memcpy(&base, launch_.arguments[at.root], 8);
    global_.blur(base);
    return true;
  }
  auto put = [&](std::size_t i, const Argument& what) {
    Value v = thread_.value(what);
    v.known &= certain;
    const std::uint64_t address = at.bits + i * static_cast<std::uint64_t>(size);
    return shared ? shared_.store(address, size, v) : global_.store(address, size, v, block_);
  };
  if (from.kind != Argument::Kind::list) return put(0, from);
  const auto& items = program_.lists[static_cast<std::size_t>(from.index)];
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!put(i, items[i])) return false;
  return true;
}

bool Machine::atomic(const Instruction& in, bool certain) {
  // atom d, [a], b, c; red [a], b
  const bool result = in.arguments[0].kind != Argument::Kind::memory;
  const Argument* a = in.arguments + (result ? 1 : 0);
  const bool shared = in.space == Space::shared;
  const int size = in.type.bytes;
  if (in.space == Space::other || in.vector > 1 || size > 8) return false;
  Value at = shared ? shared_address(a[0]) : a[0].index >= 0 ? thread_.address(a[0]) : Value{};
  if (!at.known) {
    if (shared || at.root < 0) return false;
    std::uint64_t base = 0;
    std::memcpy(&base, launch_.arguments[at.root], 8);
    global_.blur(base);
    if (result) forget(in.arguments[0]);
    return true;
  }
  if (!shared) global_.order(block_);
  Value before = shared ? shared_.load(at.bits, size) : global_.load(at.bits, size, block_, true);
  Value after;
  if (in.mode == Mode::compare_exchange) {
    Value expected = thread_.value(a[1]);
    if (before.known && expected.known)
      after = Thread::mask(before.bits, size) == Thread::mask(expected.bits, size)
                  ? thread_.value(a[2])
                  : before;
  } else {
    after = combine(in.mode, in.type, before, thread_.value(a[1]));
  }
  after.known &= certain;
  if (!(shared ? shared_.store(at.bits, size, after) : global_.store(at.bits, size, after, block_)))
    return false;
  if (result) {
    if (before.known && in.type.is_signed)
      before.bits = static_cast<std::uint64_t>(Thread::extend(before.bits, size));
    thread_.set(in.arguments[0], before, certain);
  }
  return true;
}

// cp.async [shared], [global], size, size of the source; the rest is zeros.
bool Machine::copy(const Instruction& in, bool certain) {
  Value to = shared_address(in.arguments[0]);
  Value from = in.arguments[1].index >= 0 ? thread_.address(in.arguments[1]) : Value{};
  if (!to.known) return false;
  Value taken{static_cast<std::uint64_t>(in.bytes), true, false, -1};
  if (in.argument_count > 3) taken = thread_.value(in.arguments[3]);
  for (int i = 0; i < in.bytes; ++i) {
    const auto place = static_cast<std::uint64_t>(i);
    Value v;
    if (taken.known && place >= Thread::mask(taken.bits, 4))
      v.known = true;
    else if (taken.known && from.known)
      v = global_.load(from.bits + place, 1, block_, false);
    v.known &= certain;
    if (!shared_.store(to.bits + place, 1, v)) return false;
  }
  return true;
}

}  // namespace maya::decode::ptx
