#include "decode/ptx_thread.h"

#include <cstring>

namespace maya::decode::ptx {

Summary Thread::run(const std::array<std::uint32_t, 3>& block,
                    const std::array<std::uint32_t, 3>& thread, double weight,
                    double elected_weight, Counts& counts) {
  block_ = block;
  thread_ = thread;
  weight_ = weight;
  elected_weight_ = elected_weight;
  loops_.clear();
  counts_ = &counts;
  summary_ = {};
  std::fill(registers_.begin(), registers_.end(), Value{});
  std::uint64_t begin = steps_;
  std::size_t at = 0;
  while (at < program_.code.size()) {
    if (steps_ - begin > limit_) {
      counts.exact = counts.complete = false;
      break;
    }
    ++steps_;
    const Instruction& in = program_.code[at];
    bool certain = true;
    if (in.predicate >= 0) {
      const Value& p = registers_[in.predicate];
      certain = p.known;
      if (certain && ((p.bits & 1) != 0) == in.predicate_negated) {
        if (in.code == Code::branch && in.target >= 0 && static_cast<std::size_t>(in.target) <= at)
          leave(at);
        ++at;
        continue;
      }
    }
    if (in.code == Code::exit) {
      if (certain) break;
      ++at;
      continue;
    }
    if (in.code == Code::branch) {
      if (!certain && in.assertion != 0) {
        at = in.assertion < 0 ? static_cast<std::size_t>(in.target) : at + 1;
        continue;
      }
      // Where it may end at once, the grid suggests that it has work.
      if (!certain && in.leaves != 0) {
        counts.exact = false;
        at = in.leaves < 0 ? static_cast<std::size_t>(in.target) : at + 1;
        continue;
      }
      if (!certain) {
        counts.exact = false;
        counts.unknown_loops |= registers_[in.predicate].loaded && in.target >= 0 &&
                                static_cast<std::size_t>(in.target) <= at;
      }
      if (certain && in.target >= 0) {
        auto target = static_cast<std::size_t>(in.target);
        if (target <= at && in.predicate >= 0) accelerate(at, target, in);
        at = target;
      } else {
        ++at;
      }
      continue;
    }
    if (in.code == Code::branch_indexed) {
      counts.exact = false;
      break;
    }
    step(in, certain);
    ++at;
  }
  return summary_;
}

void Thread::accelerate(std::size_t edge, std::size_t head, const Instruction& in) {
  Loop* loop = nullptr;
  for (Loop& l : loops_) {
    if (l.edge == edge)
      loop = &l;
    else if (l.edge < edge && l.head >= head)
      l.rounds = 0, l.done = false;  // inner loops start anew
  }
  if (!loop) {
    loops_.emplace_back();
    loop = &loops_.back();
    loop->edge = edge, loop->head = head;
  }
  if (loop->done) return;
  const Compared& c = compared_[in.predicate];
  if (!c.valid) return;
  if (loop->rounds >= 2) {
    std::int64_t dx = c.x - loop->x[1], dy = c.y - loop->y[1];
    bool steady = dx == loop->x[1] - loop->x[0] && dy == loop->y[1] - loop->y[0];
    Summary now = summary_ - loop->summary[1], before = loop->summary[1] - loop->summary[0];
    std::int64_t rest = steady && now == before ? remaining(c, dx, dy, in.predicate_negated) : 0;
    if (rest > 4) {
      auto skip = static_cast<std::uint64_t>(rest - 2);
      for (std::size_t i = 0; i < registers_.size(); ++i) {
        Value &r = registers_[i], &b = loop->registers[1][i], &a = loop->registers[0][i];
        if (!r.known || !b.known || !a.known) continue;
        std::uint64_t step = r.bits - b.bits;
        if (step != 0 && step == b.bits - a.bits) r.bits += step * skip;
      }
      counts_->advance(loop->counts[1], static_cast<double>(skip));
      summary_ = summary_ + now * static_cast<double>(skip);
      loop->done = true;
      return;
    }
  }
  if (loop->rounds >= 1) {
    loop->registers[0].swap(loop->registers[1]);
    loop->counts[0] = loop->counts[1];
    loop->summary[0] = loop->summary[1];
    loop->x[0] = loop->x[1], loop->y[0] = loop->y[1];
  }
  loop->registers[1] = registers_;
  loop->counts[1] = *counts_;
  loop->summary[1] = summary_;
  loop->x[1] = c.x, loop->y[1] = c.y;
  ++loop->rounds;
  if (loop->rounds > 64) loop->done = true;  // never steady: stop trying
}

std::int64_t Thread::remaining(const Compared& c, std::int64_t dx, std::int64_t dy, bool negated) {
  static constexpr std::uint8_t inverse[] = {1, 0, 5, 4, 3, 2};  // eq ne lt le gt ge
  std::uint8_t compare = negated ? inverse[c.compare] : c.compare;
  std::int64_t f = c.x - c.y, d = dx - dy;
  if (d == 0) return 0;
  switch (compare) {
    case 2:
      return d > 0 && f < 0 ? (-f + d - 1) / d - 1 : 0;
    case 3:
      return d > 0 && f <= 0 ? -f / d : 0;
    case 4:
      return d < 0 && f > 0 ? (f - d - 1) / -d - 1 : 0;
    case 5:
      return d < 0 && f >= 0 ? f / -d : 0;
    case 1:
      return f % d == 0 && -f / d > 0 ? -f / d - 1 : 0;
    default:
      return 0;
  }
}

Value Thread::special(int index) const {
  std::uint32_t linear = thread_[0] + launch_.geometry.block[0] *
                                          (thread_[1] + launch_.geometry.block[1] * thread_[2]);
  Value v;
  v.known = true;
  if (index < 3)
    v.bits = thread_[index];
  else if (index < 6)
    v.bits = launch_.geometry.block[index - 3];
  else if (index < 9)
    v.bits = block_[index - 6];
  else if (index < 12)
    v.bits = launch_.geometry.grid[index - 9];
  else if (index == 12)
    v.bits = linear % 32;
  else if (index == 13)
    v.bits = linear / 32;
  else if (index < 17)
    v.bits = block_[index - 14];
  else if (index == 17)
    v.bits = launch_.geometry.grid[0];
  else if (index == 18 || index == 19)
    v.bits = 0;
  else if (index == 20)
    v.bits = 1;
  else
    v.known = false;
  return v;
}

Value Thread::parameter(const Argument& a, int size, bool is_signed) const {
  Value v;
  if (a.parameter < 0 || static_cast<std::size_t>(a.parameter) >= program_.parameters.size() ||
      !launch_.arguments)
    return v;
  const auto& sizes = launch_.kernel->parameter_sizes;
  std::size_t bytes = static_cast<std::size_t>(a.parameter) < sizes.size() ? sizes[a.parameter] : 0;
  if (a.value < 0 || static_cast<std::size_t>(a.value) + size > bytes || size > 8) return v;
  const auto* p = static_cast<const std::byte*>(launch_.arguments[a.parameter]);
  if (!p) return v;
  std::memcpy(&v.bits, p + a.value, size);
  if (is_signed) v.bits = static_cast<std::uint64_t>(extend(v.bits, size));
  v.known = true;
  v.root = arguments_[a.parameter].root;
  return v;
}

Value Thread::steering(const Value& at, const Instruction& in) {
  Value v;
  v.loaded = true;
  const int size = in.type.bytes;
  if (at.root < 0 || !at.known || launch_.known == nullptr || size > 8) return v;
  std::uint64_t base = 0;
  std::memcpy(&base, launch_.arguments[at.root], 8);
  constexpr std::uint64_t most = 1 << 20;  // masks of blocks are small
  if (at.bits < base || at.bits - base >= most) return v;
  std::uint64_t& reach = counts_->steered_by[static_cast<std::size_t>(at.root)];
  reach = std::max(reach, at.bits - base + static_cast<std::uint64_t>(size));
  const auto step = static_cast<std::uint64_t>(size);
  const void* bytes = launch_.known(at.bits, step);
  // Large masks are known here and there: the nearest entry stands for the others.
  constexpr std::uint64_t furthest = 128;
  for (std::uint64_t i = 1; i <= furthest && bytes == nullptr; ++i) {
    if (at.bits - base >= i * step) bytes = launch_.known(at.bits - i * step, step);
    if (bytes == nullptr) bytes = launch_.known(at.bits + i * step, step);
    if (bytes != nullptr) counts_->exact = false;
  }
  if (bytes == nullptr) return v;
  std::memcpy(&v.bits, bytes, static_cast<std::size_t>(size));
  if (in.type.is_signed) v.bits = static_cast<std::uint64_t>(extend(v.bits, size));
  v.known = true;
  v.loaded = false;
  return v;
}

Value Thread::assumed_count(const Value& bound, const Instruction& in) {
  Value v = bound;
  std::int64_t most = extend(bound.bits, in.type.bytes);
  ++counts_->bounded_loops;
  counts_->exact = false;
  if (share_ >= 0) {
    carried_ += share_ * static_cast<double>(std::max<std::int64_t>(most, 0));
    // Loops that check their count at the end run at least once.
    const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(carried_));
    carried_ -= static_cast<double>(count);
    v.bits = static_cast<std::uint64_t>(std::min(count, std::max<std::int64_t>(most, 1)));
    return v;
  }
  v.bits = static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(most / 2 / bounded_loops_, 1, std::max<std::int64_t>(1, most)));
  return v;
}

void Thread::note_count(const Value& x, const Value& y, const Instruction& in) {
  const std::int64_t a = extend(x.bits, in.type.bytes), b = extend(y.bits, in.type.bytes);
  const std::int64_t count = std::min(a, b), bound = std::max(a, b);
  if (bound <= 0 || weight_ <= 0) return;
  counts_->known_shares +=
      static_cast<double>(std::max<std::int64_t>(count, 0)) / static_cast<double>(bound);
  ++counts_->known_loops;
}

}  // namespace maya::decode::ptx
