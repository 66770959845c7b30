// A reader and a small interpreter of PTX, to learn from a kernel itself what it moves and
// computes.
//
// One thread is run at a time. Integers, addresses and predicates that follow from launch arguments
// and thread indices are exact; floating-point values are "unknown". That is enough for most of
// Triton's kernels, whose control flow and masks depend on sizes, not on data. What is loaded from
// memory is unknown too, except where it decides a branch and its value is known
// (values/known_bytes.h): the block masks of FlexAttention are such data. Where it is not known, a
// loop count that the program bounds is taken as half of the bound, as under a causal mask; other
// branches on unknown predicates are not taken. The result says which of these happened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decode/decode.h"

namespace maya::decode::ptx {

enum class Code : std::uint8_t {
  nop,
  mov,
  load_parameter,
  load_global,
  load_other,
  store_global,
  store_other,
  atomic_global,
  atomic_other,
  copy_async,
  bulk_expect,
  cvt,
  cvta,
  add,
  sub,
  mul_lo,
  mul_hi,
  mul_wide,
  mad_lo,
  mad_wide,
  mad_hi,
  shl,
  shr,
  and_,
  or_,
  xor_,
  not_,
  neg,
  min,
  max,
  div,
  rem,
  setp,
  selp,
  abs,
  bfe,
  bfi,
  popc,
  clz,
  shf,
  lop3,
  prmt,
  sad,
  branch,
  branch_indexed,
  exit,
  mma,
  wgmma,
  tcgen_mma,
  shfl,
  shuffle,
  elect,
  wait,
  vote,
  redux,
  barrier,
  warp_barrier,
  float_op,
  unknown_result,
  call
};

struct Type {
  std::uint8_t bytes{4};
  bool is_signed{}, is_float{}, predicate{};
};

struct Argument {
  enum class Kind : std::uint8_t {
    none,
    reg,
    immediate,
    special,
    memory,
    list,
    label,
    unknown
  } kind{Kind::none};
  bool negated{};
  std::int16_t parameter{-1};  // memory: of this kernel parameter
  std::int32_t index{-1};      // register, special register, list, label or (memory) base register
  std::int32_t second{-1};     // the register behind a bar: "%r1|%p2"
  std::int64_t value{};        // immediate or memory offset
  bool variable{};             // memory: of shared memory, `value` bytes from its beginning
};

enum class Space : std::uint8_t { global, shared, other };

// What shuffles, votes and atomic operations do, each in its own set of names.
enum class Mode : std::uint8_t {
  none,
  index,
  up,
  down,
  butterfly,
  any,
  all,
  uniform,
  ballot,
  add,
  min,
  max,
  and_,
  or_,
  xor_,
  exchange,
  compare_exchange
};

// Floating-point arithmetic that can be followed (ptx_floats.h).
enum class Float : std::uint8_t {
  none,
  add,
  sub,
  mul,
  div,
  fma,
  min,
  max,
  neg,
  abs,
  compare,
  compare_or_unordered,
  convert
};

struct Instruction {
  Code code{Code::nop};
  Float floats{Float::none};
  Type type, from;  // from: source type of cvt
  std::int32_t predicate{-1};
  bool predicate_negated{};
  std::uint8_t compare{};  // setp: 0 eq 1 ne 2 lt 3 le 4 gt 5 ge
  std::uint8_t combine{};  // setp: 0 none 1 and 2 or 3 xor
  std::uint8_t vector{1};
  std::uint8_t argument_count{};
  std::int32_t scope{};
  double flops{};        // per thread when executed
  std::int32_t bytes{};  // moved per thread when executed
  std::int32_t target{-1};
  Space space{Space::global};
  Mode mode{Mode::none};
  bool exact{true};  // its arithmetic is all in its code and types: no saturation, no halves
  bool wraps{}, leftward{};  // shf
  bool ordered{};            // a load behind which other blocks' writes can be seen: acquire
  bool steers{};             // a load whose value reaches the predicate of a branch
  // A branch of which one way ends in a failed assertion, or at once: 1, the way it jumps; -1, the
  // other one. An exit that is such a failure: 1.
  std::int8_t assertion{}, leaves{};
  bool bounds_loop{};  // a minimum whose value reaches the predicate of a loop
  Argument arguments[6];
};

struct Parameter {
  std::uint16_t bytes{};
  bool pointer{};
};

struct Program {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Instruction> code;
  std::vector<std::vector<Argument>> lists;
  std::int32_t registers{};
  DType dtype{DType::f32};  // of the tensor-core part, else of the data
  bool tensor_cores{};
  bool elects{};                 // one lane issues work for its warp
  std::uint64_t shared_bytes{};  // of variables in shared memory whose size is declared
  bool opaque_shared{};          // instructions that are not run write to shared memory
  int unknown_opcodes{};
};

// Null when the entry is not there or cannot be read.
std::unique_ptr<Program> parse(std::string_view text, std::string_view entry);

// Fills `steers`, `bounds_loop`, `assertion` and `leaves`; parse() has done so.
void mark_steering(Program& program);

// Parameters through which nothing is written; empty when it cannot be told.
std::vector<bool> read_only_parameters(const Program& program);

struct Totals {
  double bytes_read{}, bytes_written{}, flops{}, tensor_flops{};
  bool exact{true};
  Loops loops{Loops::counted};
  // Bytes behind each parameter whose values decided branches, known or not.
  std::vector<std::uint64_t> steered_by;
  std::uint64_t steps{};  // interpreted instructions
};

// Counts of a whole launch, from representative blocks and threads.
Totals count(const Program& program, const Launch& launch);

}  // namespace maya::decode::ptx
