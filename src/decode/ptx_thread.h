// One thread of a kernel, run on the values its launch gives: addresses and loops are followed,
// data is not known. What it moves and computes is counted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "decode/ptx.h"

namespace maya::decode::ptx {

struct Value {
  std::uint64_t bits{};
  bool known{};
  bool loaded{};          // unknown because it comes from memory
  std::int16_t root{-1};  // kernel parameter the address came from
};

constexpr int max_roots = 64;

struct Traffic {
  double bytes{};  // moved, every access counted
  double blind{};  // of these, at addresses that depend on data
  std::uint64_t low{std::numeric_limits<std::uint64_t>::max()}, high{};
};

struct Counts {
  std::array<Traffic, max_roots + 1> read, written;
  double bulk_read{}, bulk_written{};
  double flops{}, tensor_flops{};
  bool exact{true};
  bool complete{true};  // false: the step limit cut it off
  int bounded_loops{};  // loops whose count was taken from their bound
  // Of loops whose count is known: what share of its bound it is, added up.
  double known_shares{};
  int known_loops{};
  bool unknown_loops{};
  std::array<std::uint64_t, max_roots> steered_by{};  // bytes behind a parameter

  // As if what happened since `before` happened `times` more.
  void advance(const Counts& before, double times) {
    auto side = [times](auto& now, const auto& then) {
      for (std::size_t i = 0; i < now.size(); ++i) {
        now[i].bytes += (now[i].bytes - then[i].bytes) * times;
        now[i].blind += (now[i].blind - then[i].blind) * times;
      }
    };
    side(read, before.read);
    side(written, before.written);
    bulk_read += (bulk_read - before.bulk_read) * times;
    bulk_written += (bulk_written - before.bulk_written) * times;
    flops += (flops - before.flops) * times;
    tensor_flops += (tensor_flops - before.tensor_flops) * times;
  }
};

// What one thread did, for comparing threads and blocks.
struct Summary {
  double read{}, written{}, bulk{}, flops{}, tensor_flops{};
  bool operator==(const Summary&) const = default;
  Summary operator-(const Summary& o) const {
    return {read - o.read, written - o.written, bulk - o.bulk, flops - o.flops,
            tensor_flops - o.tensor_flops};
  }
  Summary operator+(const Summary& o) const {
    return {read + o.read, written + o.written, bulk + o.bulk, flops + o.flops,
            tensor_flops + o.tensor_flops};
  }
  Summary operator*(double f) const {
    return {read * f, written * f, bulk * f, flops * f, tensor_flops * f};
  }
};

class Thread {
 public:
  Thread(const Program& program, const Launch& launch, const std::vector<Value>& arguments,
         std::uint64_t limit)
      : program_(program),
        launch_(launch),
        arguments_(arguments),
        registers_(program.registers),
        compared_(program.registers),
        limit_(limit) {}

  std::uint64_t steps() const { return steps_; }

  // Loops of unknown count that a thread goes through, for sharing out what is assumed of them.
  void expect_bounded_loops(int n) { bounded_loops_ = std::max(1, n); }
  // What share of its bound such a count is taken for; < 0: half, shared out.
  void expect_share(double share) { share_ = share; }

  // `weight`: threads this one stands for; `elected_weight`: blocks, for work that one thread of a
  // warp issues for all (bulk copies, tcgen05): the sample holds every warp's first lane.
  Summary run(const std::array<std::uint32_t, 3>& block, const std::array<std::uint32_t, 3>& thread,
              double weight, double elected_weight, Counts& counts);

  // The low bytes of a number, with zeros or with its sign in front.
  static std::uint64_t mask(std::uint64_t v, int bytes) {
    return bytes >= 8 ? v : v & ((std::uint64_t{1} << (8 * bytes)) - 1);
  }
  static std::int64_t extend(std::uint64_t v, int bytes) {
    if (bytes >= 8) return static_cast<std::int64_t>(v);
    std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
    v = mask(v, bytes);
    return static_cast<std::int64_t>((v ^ sign) - sign);
  }

  friend class Machine;  // runs all threads of small launches (ptx_machine.h)

 private:
  // A loop by its back edge: what it looked like the last two times round.
  struct Loop {
    std::size_t edge{}, head{};
    int rounds{};
    bool done{};
    std::vector<Value> registers[2];
    Counts counts[2];
    Summary summary[2];
    std::int64_t x[2]{}, y[2]{};
  };
  struct Compared {  // the setp that wrote a predicate
    bool valid{};
    std::uint8_t compare{};
    std::int64_t x{}, y{};
  };

  void leave(std::size_t edge) {
    for (Loop& l : loops_)
      if (l.edge == edge) l.rounds = 0, l.done = false;
  }

  // A counted loop whose rounds are alike is skipped but for its first and last rounds: registers
  // that grow by the same step each round are moved on, and the counts are multiplied. Called at a
  // taken back edge.
  void accelerate(std::size_t edge, std::size_t head, const Instruction& in);

  // How many more times the edge is taken, if both sides of the comparison go on as they did.
  static std::int64_t remaining(const Compared& c, std::int64_t dx, std::int64_t dy, bool negated);

  Value special(int index) const;

  Value value(const Argument& a) const {
    Value v;
    switch (a.kind) {
      case Argument::Kind::reg:
        v = registers_[a.index];
        break;
      case Argument::Kind::immediate:
        v.bits = static_cast<std::uint64_t>(a.value), v.known = true;
        break;
      case Argument::Kind::special:
        v = special(a.index);
        break;
      default:
        break;
    }
    if (a.negated && v.known) v.bits = (v.bits & 1) ^ 1;
    return v;
  }

  void set(const Argument& a, Value v, bool certain) {
    if (a.kind == Argument::Kind::reg) {
      if (!certain) v.known = false;
      registers_[a.index] = v;
      compared_[a.index].valid = false;
    } else if (a.kind == Argument::Kind::list) {
      for (const Argument& item : program_.lists[a.index]) set(item, Value{}, certain);
    }
  }
  void forget(const Instruction& in) {
    if (in.argument_count > 0) set(in.arguments[0], Value{}, true);
  }

  Value address(const Argument& a) const {
    Value v;
    const bool by_register = a.kind == Argument::Kind::memory || a.kind == Argument::Kind::reg;
    if (by_register && a.index >= 0) v = registers_[a.index];
    v.bits += static_cast<std::uint64_t>(a.value);
    return v;
  }

  void touch(std::array<Traffic, max_roots + 1>& side, const Value& at, double bytes,
             bool certain) {
    if (!certain) counts_->exact = false;
    Traffic& t = side[at.root >= 0 && at.root < max_roots ? at.root : max_roots];
    t.bytes += bytes * weight_;
    if (at.known) {
      t.low = std::min(t.low, at.bits);
      t.high = std::max(t.high, at.bits + static_cast<std::uint64_t>(bytes));
    } else {
      t.blind += bytes * weight_;
    }
  }

  void step(const Instruction& in, bool certain);

  // A loaded value that decides a branch, where somebody knows it.
  Value steering(const Value& at, const Instruction& in);
  // What the smaller of an unknown loaded number and a known one is taken for.
  Value assumed_count(const Value& bound, const Instruction& in);
  void note_count(const Value& x, const Value& y, const Instruction& in);

  // x & 0 and x | all ones are known even if x is not; predicates use this for masks.
  void known_zero(const Instruction& in, bool certain);
  void known_one(const Instruction& in, bool certain);

  Value wide(const Value& x, const Value& y, const Instruction& in) const;
  Value high(const Value& x, const Value& y, const Instruction& in) const;

  Value parameter(const Argument& a, int size, bool is_signed) const;

  const Program& program_;
  const Launch& launch_;
  const std::vector<Value>& arguments_;
  std::vector<Value> registers_;
  std::vector<Compared> compared_;
  std::vector<Loop> loops_;
  double elected_weight_{1};
  std::uint64_t limit_;
  std::uint64_t steps_{};
  int bounded_loops_{1};
  double share_{-1}, carried_{};  // carried: what rounding has left
  std::array<std::uint32_t, 3> block_{}, thread_{};
  double weight_{1};
  Counts* counts_{};
  Summary summary_;
  int bulk_stores_{};
};

}  // namespace maya::decode::ptx
