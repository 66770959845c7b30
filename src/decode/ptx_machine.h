// All threads of a small launch, run on known values.
//
// Each thread runs until it must meet others: at a shuffle, a vote or a barrier. When all threads
// of the warp or block are there, they go on. A branch that depends on an unknown value, threads
// that part ways before a meeting and memory of nobody end the run without a result. Of a launch
// that is too much work, some blocks are run, evenly spread, and what the others write is unknown.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "decode/ptx_memory.h"
#include "decode/ptx_scout.h"

namespace maya::decode::ptx {

// Whether a program stores anything that may be known after a launch. Results of floating-point
// arithmetic are not.
struct Knowable {
  bool stores{};      // if what it loads is known
  bool own_values{};  // whatever it loads: constants, places
};
Knowable knowable(const Program& program);

// Whether the address in a parameter is one of the device's: addresses made from it are the
// parameter's.
std::vector<Value> parameter_roots(const Program& program, const Launch& launch);

class Machine {
 public:
  // `budget`: instructions for those blocks of a large launch that are run; `scout`: of this
  // program, if it helps.
  Machine(const Program& program, const Launch& launch, std::uint64_t budget = most_steps,
          const Scout* scout = nullptr);
  bool run(Effects& effects);
  // A branch depended on something unknown, and that ended the run.
  bool undecided() const { return undecided_; }
  // A number that nobody computed is above zero and differs from whatever it is compared with: a
  // drafted token is valid and not the one that the model chooses. For small launches, within few
  // steps.
  void take_unknown_numbers_to_differ() { differ_ = true, limit_ = most_steps / 48; }

 private:
  static constexpr std::uint32_t warp_size = 32;
  static constexpr std::uint64_t most_steps = 48000000;
  static constexpr std::uint64_t most_blocks = 1 << 20;

  enum class Where : std::uint8_t { running, at_warp, at_block, done };
  struct Lane {
    std::vector<Value> registers;
    std::array<std::uint32_t, 3> place{};
    std::size_t at{};
    Where where{Where::running};
  };

  bool run_some(std::uint64_t blocks);
  void forget_outputs();
  bool run_block(std::uint32_t block);
  bool run_lane(Lane& lane);
  // Threads that are sure to store nothing.
  void find_silent(std::uint32_t block);
  bool silent(const Lane& lane);
  void note_load(std::uint64_t address, int bytes, const Value& value);
  // One instruction that needs no other thread; false: the run has no result.
  bool step(const Instruction& in, bool certain);
  bool load(const Instruction& in, bool certain);
  bool store(const Instruction& in, bool certain);
  bool atomic(const Instruction& in, bool certain);
  bool copy(const Instruction& in, bool certain);
  Value taken_for_granted(const Instruction& in) const;
  void forget(const Argument& a);
  Value shared_address(const Argument& a) const;

  // What the lanes of a warp do together, each with its own registers.
  bool meet(std::size_t first, std::size_t last);
  void shuffle(const Instruction& in, std::size_t first, std::size_t last);
  void vote(const Instruction& in, std::size_t first, std::size_t last);
  void reduce(const Instruction& in, std::size_t first, std::size_t last);
  Value of(Lane& lane, const Argument& a);
  void give(Lane& lane, const Argument& a, const Value& v);

  const Program& program_;
  const Launch& launch_;
  std::vector<Value> arguments_;
  Thread thread_;
  Counts ignored_;
  GlobalMemory global_;
  SharedMemory shared_;
  std::vector<Lane> lanes_;
  const Scout* scout_;
  std::vector<Value> scouted_;
  std::vector<bool> silent_;
  Silence* noting_{};  // what loads are noted in
  std::uint64_t launch_hash_{};
  std::uint32_t block_{};
  std::uint64_t budget_, steps_{};
  std::uint64_t limit_{most_steps};
  bool meets_blocks_{};  // blocks look at what others wrote
  bool undecided_{}, differ_{};
};

// What an atomic operation or a reduction over a warp makes of two integers.
Value combine(Mode mode, const Type& type, const Value& x, const Value& y);

}  // namespace maya::decode::ptx
