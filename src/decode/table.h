// Kernel families as data: a row says which kernels it is for, which op they are and where the
// numbers are. A small interpreter turns rows into decoders.
//
//   {.kernel = "layer_norm_grad_input_kernel", .when = "!t2",
//    .op = "normalization kind=layer direction=backward dtype=T0 rows=grid cols=a-1"}
//
// The op is written in its own text form (op/text.h: "gemm m=4096 n=…"), with expressions where the
// values are:
//
//   a3, a-1        argument 3, the last one: integers
//   i0, i-1        the first, the last of the integers among the parameters; 1 if there is none
//   s0.2           size of dimension 2 of the tensor (TensorInfo or accessor) that argument 0 is
//   n0             elements of the tensor that argument 0 is
//   t2             template argument 2 as a number; "true" is 1
//   T2, P0         element type of template argument 2; of parameter 0, or of what it points to.
//                  T1:T0 takes T0 where T1 is none, then f32
//   I              type of indices: i32 where the last template argument is that, else i64
//   size(T0)       bytes of an element
//   grid, block    of the launch, x; grid.y, block.z …; blocks, threads: all of them
//   elements, …    a field that stands further left
//   1 + 2 - 3 * 4 / 5, ( ), max(x,y)
//
// Names of types (bf16) and enumerators (backward) stand for themselves. What decides the op (the
// key of a launch) follows from the arguments that the row mentions.
//
// A row for a kernel with arguments of unusual form belongs into code (rule.h).
#pragma once

#include <span>

#include "decode/rule.h"

namespace maya::decode {

struct Row {
  // Name of the kernel without its namespaces. Alternatives are separated by |; a * (at most two)
  // stands for anything.
  std::string_view kernel;
  // Conditions on the name, separated by spaces; all must hold. "t2": that template argument is not
  // 0; "T0=f32": it is that type; "p1=long": that parameter is of this type; "has:Backward": the
  // name has this part; "of:plus<": the whole demangled name has it. A ! in front means not.
  std::string_view when;
  std::string_view op;
  // Memory that is touched, where the pointers tell: "w0=elements*4 r1=elements*4", argument and
  // bytes. Empty: unknown.
  std::string_view touches;
  // What happens to values (values/semantics.h): kind, then k= and function=, and operands as
  // "out=a1:T0:elements in=a0:T0:elements", argument, type and number of elements side by side.
  std::string_view values;
  bool always{};  // values are followed at every launch: the results are integers a host may read
};

// A decoder from the first row that the kernel meets; null: none.
Made from_rows(std::span<const Row> rows, const Kernel& kernel, const Name& name);

// The tables there are, for the test that reads all of them; each lies with its family.
std::span<const Row> norm_rows();
std::span<const Row> channels_last_rows();
std::span<const Row> embedding_rows();
std::span<const Row> loss_rows();
std::span<const Row> sort_rows();
std::span<const Row> index_rows();
std::span<const Row> random_rows();
std::span<const Row> package_rows();

// What is wrong with a row, for the test that reads all of them; empty: nothing.
std::string fault(const Row& row);

}  // namespace maya::decode
