// Prefix sums of ATen (CUB's are in cub.cpp).
#include <algorithm>

#include "decode/operands.h"

namespace maya::decode {

Made prepare_scan(const Kernel& kernel, const Name& name) {
  const std::string& leaf = name.leaf;
  if (!starts_with(leaf, "tensor_kernel_scan_") && leaf != "final_scan_kernel" &&
      leaf != "calc_block_sums")
    return nullptr;
  auto signature = std::make_shared<Signature>(kernel, name);
  bool outer = contains(leaf, "outer_dim"), with_indices = contains(leaf, "with_indices");
  DType t = signature->parameters().empty() ? DType::f32 : signature->parameters()[0].dtype;
  std::string function = contains(kernel.demangled, "std::plus") || leaf == "final_scan_kernel"
                             ? "sum"
                         : contains(kernel.demangled, "multiplies") ? "product"
                                                                    : "";
  bool values = is_integer(t);

  if (leaf == "final_scan_kernel" || leaf == "calc_block_sums") {
    bool final = leaf == "final_scan_kernel";
    return make(
        signature->key(kernel),
        [=](const Arguments& a, Decoded& d) {
          Scan work;
          work.elements = a.integer(final ? 3 : 2);
          std::int64_t size = std::max(1, bits(t) / 8);
          work.bytes_read = work.elements * size;
          work.bytes_written =
              final ? work.elements * size : static_cast<std::int64_t>(a.grid(0)) * size;
          d.op.work = work;
          if (!final) return;
          d.semantics.kind = Semantics::Kind::scan;
          d.semantics.function = "sum";
          Semantics::Operand in, out;
          in.dtype = t;
          out.dtype = signature->parameters().size() > 1 ? signature->parameters()[1].dtype : t;
          in.address = a.pointer(0), out.address = a.pointer(1);
          in.rank = out.rank = 1;
          in.size[0] = out.size[0] = work.elements;
          in.stride[0] = bits(in.dtype) / 8, out.stride[0] = bits(out.dtype) / 8;
          d.semantics.outputs = {out};
          d.semantics.inputs = {in};
        },
        values);
  }
  return make(
      signature->key(kernel),
      [=](const Arguments& a, Decoded& d) {
        const auto& integers = signature->integers();
        Scan work;
        std::int64_t rows = integers.empty() ? 1 : a.integer(integers[0]);
        std::int64_t second = integers.size() > 1 ? a.integer(integers[1]) : 1;
        std::int64_t third = outer && integers.size() > 2 ? a.integer(integers[2]) : 1;
        work.elements = rows * second * third;
        std::int64_t size = std::max(1, bits(t) / 8);
        work.bytes_read = work.elements * size;
        work.bytes_written = work.elements * (size + (with_indices ? 8 : 0));
        d.op.work = work;
        if (with_indices || function.empty()) return;
        // (target, source, …): rows × length, or outer rows × length × inner rows
        Semantics::Operand o;
        o.dtype = t;
        o.rank = outer ? 3 : 2;
        if (outer) {
          o.size[0] = third, o.size[1] = second, o.size[2] = rows;
          o.stride[0] = second * size, o.stride[1] = size, o.stride[2] = third * second * size;
        } else {
          o.size[0] = second, o.size[1] = rows;
          o.stride[0] = size, o.stride[1] = second * size;
        }
        d.semantics.k = outer ? third : second;
        d.semantics.kind = Semantics::Kind::scan;
        d.semantics.function = function;
        o.address = a.pointer(0);
        d.semantics.outputs = {o};
        o.address = a.pointer(1);
        d.semantics.inputs = {o};
        write(d, a.pointer(0), work.bytes_written);
        read(d, a.pointer(1), work.bytes_read);
      },
      values);
}

}  // namespace maya::decode
