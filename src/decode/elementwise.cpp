// ATen's elementwise kernels: one output element from a few inputs at the same index.
//   vectorized_elementwise_kernel<vec, F, array<char*, n>>(int N, F f, array data)
//   unrolled_elementwise_kernel<F, array, [work,] ic, oc, loader, storer>(N, f, data, ic, oc, l, s)
//   elementwise_kernel<threads, work, lambda>(N, lambda{OffsetCalculator, data, f, [dtypes]})
//   unrolled_elementwise_kernel_for_multi_outputs<outputs, F, array, ic, oc>(N, f, data, ic, oc)
//   elementwise_kernel_with_index<index, F>(N, f, out)
#include <algorithm>
#include <atomic>
#include <cmath>

#include "decode/functor.h"
#include "decode/offsets.h"
#include "decode/rule.h"

namespace maya::decode {
namespace {

enum class Form : std::uint8_t { vectorized, unrolled, strided, multi_output, with_index };

struct Operand {
  DType dtype{DType::unknown};
  int size{};
  std::uint64_t address{};
};

class Elementwise : public Decoder {
 public:
  Form form{};
  Functor functor;
  int inputs{1}, outputs{1};
  int vector{1};
  bool casts{};          // types of the tensors come with the launch
  std::size_t data{2};   // the parameter with the pointers: behind the functor, if there is one
  bool input_offsets{};  // unrolled with an OffsetCalculator over the inputs
  bool output_offsets{};
  DType index_out{DType::unknown};
  mutable std::atomic<std::int32_t> base{
      -1};  // where the OffsetCalculator lies in the lambda; -1: not looked yet

  std::size_t key(const Launch& launch, std::byte* out, std::size_t capacity) const override {
    Arguments arguments(launch);
    std::size_t used = 0;
    auto add = [&](const void* p, std::size_t n) {
      if (p && used + n <= capacity) std::memcpy(out + used, p, n), used += n;
    };
    add(arguments.raw(0, 0, arguments.size(0)), arguments.size(0));
    if (form == Form::strided) {
      int n = inputs + outputs;
      std::int32_t at = place(arguments);
      if (const std::byte* p = arguments.raw(1, at, Offsets::bytes(n))) {
        std::uint64_t h = Offsets::hash(p, n);
        add(&h, 8);
      }
      if (casts) {
        if (std::size_t d = dtypes_at(arguments)) add(arguments.raw(1, d, n), n);
      }
    } else if (form == Form::unrolled || form == Form::multi_output) {
      if (casts) {
        // The types only: the bytes between them and the sizes are not set.
        add(arguments.raw(data + 3, 0, inputs), inputs);
        add(arguments.raw(data + 4, 0, 1), 1);
      }
      for (bool in : {true, false}) {
        if (!(in ? input_offsets : output_offsets)) continue;
        int n = in ? inputs : outputs;
        if (const std::byte* p = arguments.raw(data + (in ? 1 : 2), 0, Offsets::bytes(n))) {
          std::uint64_t h = Offsets::hash(p, n);
          add(&h, 8);
        }
      }
    }
    return used;
  }

  bool touches_values() const override {
    DType t = dtype_of(functor.result);
    if (index_out != DType::unknown) t = index_out;
    return t == DType::unknown || is_integer(t);
  }

  // Floats steer nothing, but for the ones and zeros that counters and averages start from.
  // Probabilities are looked at.
  std::int64_t touches_values_up_to() const override {
    return functor.function == "fill" ? 32 : functor.function == "sigmoid" ? most_supposed : 0;
  }
  std::int64_t elements(const Launch& launch) const override {
    return Arguments(launch).integer(0);
  }

  Decoded decode(const Launch& launch) const override {
    Arguments arguments(launch);
    Decoded out;
    out.op.geometry = launch.geometry;
    std::int64_t n = arguments.integer(0);

    int count = inputs + outputs;
    std::vector<Operand> operands(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      const std::string& type = i < outputs ? functor.result
                                : i - outputs < static_cast<int>(functor.inputs.size())
                                    ? functor.inputs[i - outputs]
                                    : functor.result;
      operands[i].dtype = dtype_of(type);
      operands[i].size = size_of(type) ? size_of(type) : 4;
    }

    Offsets offsets, output_calc;
    bool have_offsets = false, bytes_strides = false, have_output = false;
    bool told = true;  // what type the operands are of in memory
    if (form == Form::strided) {
      std::int32_t at = place(arguments);
      have_offsets = offsets.read(arguments.raw(1, at, Offsets::bytes(count)), count, n);
      bytes_strides = true;
      std::size_t data = data_at(at, count);
      for (int i = 0; i < count; ++i) operands[i].address = arguments.pointer(1, data + 8 * i);
      if (casts) {
        const std::size_t types = dtypes_at(arguments);
        for (int i = 0; types && i < count; ++i)
          set_type(operands[i], arguments.at<std::int8_t>(1, types + i));
        told = types != 0;
      }
    } else if (form == Form::with_index) {
      operands[0].address = arguments.pointer(2);
      operands[0].dtype = index_out;
      operands[0].size = index_out == DType::unknown ? 4 : bits(index_out) / 8;
    } else {
      for (int i = 0; i < count; ++i) operands[i].address = arguments.pointer(data, 8 * i);
      if (form == Form::unrolled && casts) {
        std::size_t sizes = (static_cast<std::size_t>(inputs) + 3) / 4 * 4;
        for (int i = 0; i < inputs; ++i) {
          set_type(operands[outputs + i], arguments.at<std::int8_t>(data + 3, i));
          if (auto s = arguments.at<std::uint32_t>(data + 3, sizes + 4 * i); s > 0 && s <= 16)
            operands[outputs + i].size = static_cast<int>(s);
        }
        set_type(operands[0], arguments.at<std::int8_t>(data + 4, 0));
        if (auto s = arguments.at<std::uint32_t>(data + 4, 4); s > 0 && s <= 16)
          operands[0].size = static_cast<int>(s);
      }
      if (input_offsets)
        have_offsets = offsets.read(arguments.raw(data + 1, 0, Offsets::bytes(inputs)), inputs, n);
      if (output_offsets)
        have_output =
            output_calc.read(arguments.raw(data + 2, 0, Offsets::bytes(outputs)), outputs, n);
    }

    Pointwise work;
    work.elements = n;
    work.inputs = inputs;
    work.outputs = outputs;
    work.flops_per_element = functor.flops;
    work.vector = form == Form::vectorized ? vector : 1;
    work.strided = form == Form::strided || input_offsets;
    work.dtype = operands[0].dtype;
    if (inputs > 0 && (is_integer(work.dtype) || work.dtype == DType::unknown))
      for (const Operand& o : operands)
        if (o.dtype != DType::unknown && !is_integer(o.dtype)) work.dtype = o.dtype;
    if (work.dtype == DType::unknown && count > outputs) work.dtype = operands[outputs].dtype;

    for (int i = 0; i < count; ++i) {
      const Operand& o = operands[i];
      bool writes = i < outputs;
      std::int64_t distinct = n, span = n * o.size;
      int column = form == Form::strided ? i : i - outputs;
      if (have_offsets && column >= 0 && column < offsets.arguments) {
        distinct = offsets.distinct(column);
        span = offsets.span(column, o.size, bytes_strides);
      } else if (have_output && writes) {
        distinct = output_calc.distinct(i);
        span = output_calc.span(i, o.size, false);
      }
      (writes ? work.bytes_written : work.bytes_read) += distinct * o.size;
      if (writes) {
        write(out, o.address, span);
        if (!out.accesses.empty())
          out.accesses.back().at_least = o.dtype == DType::unknown || !told;
      } else {
        read(out, o.address, span);
      }
    }
    out.op.work = work;
    if (told)
      fill_semantics(arguments, operands, have_offsets ? &offsets : nullptr, bytes_strides, n, out);
    return out;
  }

 private:
  static void set_type(Operand& o, int scalar_type) {
    DType t = dtype_of_scalar_type(scalar_type);
    if (t == DType::unknown) return;
    o.dtype = t;
    o.size = bits(t) / 8;
  }

  std::int32_t place(const Arguments& arguments) const {
    if (std::int32_t known = base.load(std::memory_order_relaxed); known >= 0) return known;
    int n = inputs + outputs;
    for (std::int32_t at : {0, 8}) {
      Offsets offsets;
      const std::byte* p = arguments.raw(1, at, Offsets::bytes(n));
      if (!offsets.read(p, n, arguments.integer(0))) continue;
      base.store(at, std::memory_order_relaxed);
      return at;
    }
    return 0;
  }
  static std::size_t data_at(std::int32_t base, int n) {
    return (static_cast<std::size_t>(base) + Offsets::bytes(n) + 7) / 8 * 8;
  }
  // The lambda captures f, then the array of dtypes. Zero when it cannot be told.
  std::size_t dtypes_at(const Arguments& arguments) const {
    int n = inputs + outputs;
    std::size_t begin = data_at(place(arguments), n) + 8 * static_cast<std::size_t>(n);
    const std::size_t size = functor_size();
    if (size == 0) return 0;
    // nvcc's wrapper of a host-device lambda adds a pointer, to f's and to the whole: the size
    // tells.
    const std::size_t captures = size == 1 ? 0 : (size + 7) / 8 * 8;
    for (std::size_t f : {size, captures + 8}) {
      const std::size_t at = begin + f;
      const std::size_t end = (at + static_cast<std::size_t>(n) + 7) / 8 * 8;
      if (end != arguments.size(1) && end + 8 != arguments.size(1)) continue;
      bool types = true;
      for (int i = 0; types && i < n; ++i) {
        const std::byte* p = arguments.raw(1, at + i, 1);
        types = p && dtype_of_scalar_type(static_cast<int>(*p)) != DType::unknown;
      }
      if (types) return at;
    }
    return 0;
  }
  std::size_t functor_size() const {
    if (functor.scalar_size == 0) return functor.compares ? 4 : 1;
    bool two = (functor.function == "add" || functor.function == "clamp") && inputs == 1;
    std::size_t count = two ? 2 : 1;
    return static_cast<std::size_t>(functor.scalar_offset) + count * functor.scalar_size;
  }
  std::size_t functor_at(const Arguments& arguments) const {
    int n = inputs + outputs;
    if (form == Form::strided)
      return data_at(place(arguments), n) + 8 * static_cast<std::size_t>(n);
    return 0;
  }

  void fill_semantics(const Arguments& arguments, const std::vector<Operand>& operands,
                      const Offsets* offsets, bool bytes_strides, std::int64_t n,
                      Decoded& out) const {
    Semantics& s = out.semantics;
    using Kind = Semantics::Kind;
    const std::string& name = functor.function;
    DType scalar_type = dtype_of(functor.scalar_type);
    const std::byte* f = arguments.raw(1, functor_at(arguments), functor_size());
    if (f && functor.scalar_size) s.scalar = scalar_value(f + functor.scalar_offset, scalar_type);
    s.function = name;

    if (form == Form::with_index) {
      if (name == "arange" || name == "range") {
        // The lambda keeps start and step in the accumulation type.
        // nvcc's wrapper of a host-device lambda adds a pointer behind.
        DType t = is_integer(index_out)     ? DType::i64
                  : index_out == DType::f64 ? DType::f64
                                            : DType::f32;
        if (index_out == DType::unknown) t = arguments.size(1) == 24 ? DType::i64 : DType::f32;
        int width = bits(t) / 8;
        if (const std::byte* p = arguments.raw(1, 0, 2 * width)) {
          s.kind = Kind::arange;
          s.scalar = scalar_value(p, t);
          s.scalar2 = scalar_value(p + width, t);
        }
      }
      if (name == "linspace" && index_out == DType::f32) {
        // { start, end, long steps, step }: exact in the first half, close enough in the second
        s.kind = Kind::arange;
        s.scalar = arguments.at<float>(1, 0);
        s.scalar2 = arguments.at<float>(1, 16);
      }
    } else if (outputs != 1) {
      return;
    } else if (name == "fill" && inputs == 0) {
      s.kind = Kind::fill;
    } else if (contains(name, "copy") && inputs == 1) {
      s.kind = Kind::copy_cast;
    } else if (functor.compares && f) {
      std::int32_t op = 0;
      std::memcpy(&op, f + std::max(0, functor.operator_offset), 4);
      static constexpr std::string_view equal[] = {"eq", "ne"}, order[] = {"ge", "gt", "le", "lt"};
      static constexpr std::string_view swapped[] = {"le", "lt", "ge", "gt"};
      bool eq = name == "compareeq";
      if (op < 0 || op >= (eq ? 2 : 4)) return;
      s.kind = Kind::compare;
      s.function = eq ? equal[op] : functor.scalar_first && inputs == 1 ? swapped[op] : order[op];
    } else if (name == "where") {
      s.kind = Kind::where;
    } else if (name == "masked_fill" && inputs == 2) {
      s.kind = Kind::where;
      s.function = "masked_fill";
    } else if (name == "add" && f && functor.scalar_size) {
      s.kind = Kind::binary;
      if (inputs == 1) {
        double alpha = scalar_value(f + functor.scalar_size, scalar_type);
        if (functor.scalar_first) {  // scalar + alpha · x
          if (alpha == -1)
            s.function = "rsub";
          else if (alpha != 1)
            s.kind = Kind::unknown;
        } else {
          s.scalar *= alpha;
        }
      } else {
        if (s.scalar == -1) s.function = "sub";  // else a + alpha · b, alpha in scalar
      }
    } else if (name == "clamp" && inputs == 1 && f) {
      std::int32_t limits = 0;  // ATen's ClampLimits: lower, upper, both
      std::memcpy(&limits, f, 4);
      if (limits < 0 || limits > 2) return;
      s.kind = limits == 2 ? Kind::unary : Kind::binary;
      s.function = limits == 2 ? "clamp" : limits == 1 ? "min" : "max";
      s.scalar2 = scalar_value(f + functor.scalar_offset + functor.scalar_size, scalar_type);
    } else if (inputs == 2 || (inputs == 1 && functor.scalar_size)) {
      static constexpr std::string_view commutes[] = {"mul", "add", "max", "min",
                                                      "and", "or",  "xor"};
      s.function = plain_name(name);
      if (!functor.scalar_first || inputs == 2 ||
          std::find(std::begin(commutes), std::end(commutes), s.function) != std::end(commutes))
        s.kind = Kind::binary;
    } else if (inputs == 1) {
      s.kind = Kind::unary;
      s.function = plain_name(name);
    }
    if (s.kind == Kind::unknown) return;

    for (std::size_t i = 0; i < operands.size(); ++i) {
      Semantics::Operand o;
      o.dtype = operands[i].dtype;
      o.address = operands[i].address;
      bool writes = static_cast<int>(i) < outputs;
      int column = form == Form::strided ? static_cast<int>(i) : static_cast<int>(i) - outputs;
      if (offsets && column >= 0 && column < offsets->arguments) {
        if (offsets->dims > 8) {
          s.kind = Kind::unknown;
          return;
        }
        o.rank = offsets->dims;
        for (int d = 0; d < offsets->dims; ++d) {
          o.size[d] = offsets->size[d];
          o.stride[d] = offsets->stride[d][column] * (bytes_strides ? 1 : operands[i].size);
        }
      } else {
        o.rank = 1;
        o.size[0] = n;
        o.stride[0] = operands[i].size;
      }
      (writes ? s.outputs : s.inputs).push_back(o);
    }
  }
};

int array_count(std::string_view type) {
  // "std::array<char*, 3ul>", "at::detail::Array<char*, 3>"
  std::size_t at = type.find("char*, ");
  if (at == std::string_view::npos) return 0;
  return std::atoi(std::string(type.substr(at + 7)).c_str());
}

// The functor inside "gpu_kernel_impl_nocast<F>(TensorIteratorBase&, F const&)::{lambda(int)#1}".
std::string_view wrapped_functor(std::string_view lambda) {
  std::size_t at = lambda.find("gpu_kernel_impl");
  if (at == std::string_view::npos) return {};
  std::size_t open = lambda.find('<', at);
  if (open == std::string_view::npos) return {};
  int depth = 0;
  for (std::size_t i = open; i < lambda.size(); ++i) {
    if (lambda[i] == '<') ++depth;
    if (lambda[i] == '>' && --depth == 0) return lambda.substr(open + 1, i - open - 1);
  }
  return lambda.substr(open + 1);
}

// Operands from the size of the lambda, for functors that do not tell: the only n for which
// OffsetCalculator<n> and n pointers fit with a small functor behind.
int operands_from_size(std::size_t size) {
  for (int n = 8; n >= 1; --n)
    if ((Offsets::bytes(n) + 7) / 8 * 8 + 8 * static_cast<std::size_t>(n) <= size) return n;
  return 2;
}

std::size_t data_parameter(const Name& name) {
  const bool no_functor = name.parameters.size() > 1 && contains(name.parameters[1], "char*") &&
                          starts_with(name.parameters[1], "std::array<");
  return no_functor ? 1 : 2;
}

}  // namespace

Made prepare_elementwise(const Kernel& kernel, const Name& name) {
  auto d = std::make_unique<Elementwise>();
  const auto& t = name.templates;
  if (name.leaf == "vectorized_elementwise_kernel" && t.size() >= 2) {
    d->form = Form::vectorized;
    d->vector = static_cast<int>(template_number(name, 0, 4));
    int n = t.size() > 2 ? array_count(t[2]) : 2;
    d->inputs = std::max(0, n - 1);
    d->functor = parse_functor(t[1], d->inputs);
    d->data = data_parameter(name);
    return d;
  }
  if (name.leaf == "unrolled_elementwise_kernel" && !t.empty()) {
    d->form = Form::unrolled;
    int n = t.size() > 1 ? array_count(t[1]) : 2;
    d->inputs = std::max(0, n - 1);
    d->functor = parse_functor(t[0], d->inputs);
    for (const std::string& s : t)
      d->casts |= contains(s, "LoadWithCast") || contains(s, "StoreWithCast");
    d->data = data_parameter(name);
    if (name.parameters.size() > d->data + 2) {
      d->input_offsets = starts_with(name.parameters[d->data + 1], "OffsetCalculator");
      d->output_offsets = starts_with(name.parameters[d->data + 2], "OffsetCalculator");
    }
    return d;
  }
  if (name.leaf == "elementwise_kernel" && t.size() >= 3) {
    std::string_view f = wrapped_functor(t[2]);
    d->form = Form::strided;
    d->casts = contains(t[2], "gpu_kernel_impl<");
    d->functor = parse_functor(f.empty() ? std::string_view(t[2]) : f);
    d->inputs = static_cast<int>(d->functor.inputs.size());
    if (kernel.parameter_sizes.size() > 1) {
      int n = operands_from_size(kernel.parameter_sizes[1]);
      // A functor with captures can hide one more pointer's worth; trust the name where it fits.
      bool fits = (Offsets::bytes(d->inputs + 1) + 7) / 8 * 8 +
                      8 * static_cast<std::size_t>(d->inputs + 1) <=
                  kernel.parameter_sizes[1];
      if (!fits || n - 1 > d->inputs) {
        d->inputs = n - 1;
        d->functor = parse_functor(f.empty() ? std::string_view(t[2]) : f, d->inputs);
      }
    }
    return d;
  }
  if (name.leaf == "unrolled_elementwise_kernel_for_multi_outputs" && t.size() >= 3) {
    d->form = Form::multi_output;
    d->outputs = static_cast<int>(template_number(name, 0, 2));
    d->inputs = std::max(0, array_count(t[2]) - d->outputs);
    d->functor = parse_functor(t[1], d->inputs);
    d->input_offsets = t.size() > 3 && starts_with(t[3], "OffsetCalculator");
    d->output_offsets = t.size() > 4 && starts_with(t[4], "OffsetCalculator");
    return d;
  }
  if (name.leaf == "elementwise_kernel_with_index" && t.size() >= 2) {
    d->form = Form::with_index;
    d->functor = parse_functor(t[1], 0);
    d->inputs = 0;
    d->functor.inputs.clear();
    d->index_out =
        name.parameters.size() > 2 ? dtype_of(pointee(name.parameters[2])) : DType::unknown;
    // The type is only in the number of the dispatch lambda: AT_DISPATCH_ALL_TYPES_AND2 counts
    // through these.
    static constexpr DType dispatched[] = {DType::u8,  DType::i8,  DType::i32,
                                           DType::i64, DType::i16, DType::f64,
                                           DType::f32, DType::f16, DType::bf16};
    std::size_t at = t[1].rfind("{lambda()#");
    if (d->index_out == DType::unknown && at != std::string::npos) {
      int number = std::atoi(t[1].c_str() + at + 10);
      // linspace and logspace dispatch integers in their first branch, the others in their second.
      static constexpr DType fractional[] = {DType::f64,     DType::f32, DType::unknown,
                                             DType::unknown, DType::f16, DType::bf16};
      bool space = contains(t[1], "linspace_cuda") || contains(t[1], "logspace_cuda");
      bool second = space && contains(t[1], "{lambda()#2}::operator()() const::{lambda()#");
      if (second) {
        if (number >= 1 && number <= static_cast<int>(std::size(fractional)))
          d->index_out = fractional[number - 1];
      } else if (number >= 1 && number <= static_cast<int>(std::size(dispatched))) {
        d->index_out = dispatched[number - 1];
      }
    }
    d->functor.result = d->index_out == DType::unknown ? "long" : std::string();
    return d;
  }
  return nullptr;
}

}  // namespace maya::decode
