#include "decode/operands.h"

#include <algorithm>
#include <cstdlib>

namespace maya::decode {
namespace {

std::string first_argument(std::string_view type) {
  std::size_t open = type.find('<');
  if (open == std::string_view::npos) return {};
  std::vector<std::string> arguments = split_arguments(type.substr(open + 1));
  return arguments.empty() ? std::string() : arguments[0];
}

int rank_of_accessor(std::string_view type) {
  // New: IndexBoundsCheck<3ul, int>; old: PackedTensorAccessor32<float, 3ul, …>,
  // GenericPacked…<float, 3ul…
  for (std::string_view marker : {"IndexBoundsCheck<", "Accessor32<", "Accessor64<", "Accessor<"}) {
    std::size_t at = type.find(marker);
    if (at == std::string_view::npos) continue;
    std::string_view rest = type.substr(at + marker.size());
    if (marker != "IndexBoundsCheck<") {
      std::size_t comma = rest.find(", ");
      if (comma == std::string_view::npos) continue;
      rest = rest.substr(comma + 2);
    }
    int rank = std::atoi(std::string(rest).c_str());
    if (rank > 0 && rank <= 8) return rank;
  }
  return 0;
}

}  // namespace

Signature::Signature(const Kernel& kernel, const Name& name) {
  using Kind = Parameter::Kind;
  std::size_t count = std::max(name.parameters.size(), kernel.parameter_sizes.size());
  for (std::size_t i = 0; i < count; ++i) {
    Parameter p;
    std::string_view type = i < name.parameters.size() ? std::string_view(name.parameters[i]) : "";
    if (is_pointer(type)) {
      p.kind = Kind::pointer;
      std::string_view element = pointee(type);
      p.dtype = dtype_of(element);
      p.element_bytes = size_of(element) ? size_of(element) : element == "void" ? 1 : 4;
      if (contains(element, "AccumulateType<double")) p.element_bytes = 8;
      p.written = !is_const_pointer(type);
      if (is_pointer(element)) p.kind = Kind::other;  // pointers to pointers: tables
    } else if (contains(type, "TensorInfo<")) {
      p.kind = Kind::tensor_info;
      std::string element = first_argument(type.substr(type.find("TensorInfo<")));
      p.written = !contains(element, " const");
      p.dtype = dtype_of(element);
      if (ends_with(element, " const")) element.resize(element.size() - 6);
      p.element_bytes = size_of(element) ? size_of(element) : 4;
    } else if (contains(type, "TensorAccessor")) {
      p.kind = Kind::accessor;
      p.rank = rank_of_accessor(type);
      std::string element;
      // The element type is the argument in front of the rank.
      for (std::string_view part :
           {"float", "double", "c10::Half", "c10::BFloat16", "c10::Float8_e4m3fn",
            "c10::Float8_e5m2", "long", "int", "unsigned char", "signed char", "bool", "short"}) {
        std::string marker = ", " + std::string(part), direct = "<" + std::string(part);
        for (const std::string& m : {marker, direct})
          if (contains(type, m + ", ") || contains(type, m + " const, ")) {
            p.written = !contains(type, m + " const, ");
            element = part;
            break;
          }
        if (!element.empty()) break;
      }
      p.dtype = dtype_of(element);
      p.element_bytes = size_of(element) ? size_of(element) : 4;
    } else if (is_integer_scalar(type)) {
      p.kind = Kind::integer;
      integers_.push_back(i);
    }
    parameters_.push_back(p);
  }
}

Tensor Signature::tensor(const Arguments& a, std::size_t i) const {
  Tensor t;
  if (i >= parameters_.size()) return t;
  const Parameter& p = parameters_[i];
  t.dtype = p.dtype;
  t.element_bytes = p.element_bytes;
  t.written = p.written;
  t.address = a.pointer(i);
  using Kind = Parameter::Kind;
  if (p.kind == Kind::tensor_info) {
    // { T* data; index sizes[25]; index strides[25]; int dims; }
    bool wide = a.size(i) >= 400;
    std::size_t width = wide ? 8 : 4;
    int dims = a.at<std::int32_t>(i, 8 + 50 * width);
    if (dims < 0 || dims > 25) return t;
    t.rank = dims;
    t.elements = 1;
    for (int d = 0; d < dims; ++d) {
      t.size[d] = wide ? a.at<std::int64_t>(i, 8 + 8 * d) : a.at<std::int32_t>(i, 8 + 4 * d);
      t.stride[d] = wide ? a.at<std::int64_t>(i, 208 + 8 * d) : a.at<std::int32_t>(i, 108 + 4 * d);
      t.elements *= std::max<std::int64_t>(0, t.size[d]);
    }
  } else if (p.kind == Kind::accessor && p.rank > 0) {
    bool wide = a.size(i) >= 8 + 16 * static_cast<std::size_t>(p.rank);
    t.rank = p.rank;
    t.elements = 1;
    for (int d = 0; d < p.rank; ++d) {
      t.size[d] = wide ? a.at<std::int64_t>(i, 8 + 8 * d) : a.at<std::int32_t>(i, 8 + 4 * d);
      t.stride[d] = wide ? a.at<std::int64_t>(i, 8 + 8 * (p.rank + d))
                         : a.at<std::int32_t>(i, 8 + 4 * (p.rank + d));
      t.elements *= std::max<std::int64_t>(0, t.size[d]);
    }
  }
  return t;
}

std::vector<Tensor> Signature::tensors(const Arguments& a) const {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto kind = parameters_[i].kind;
    if (kind == Parameter::Kind::integer || kind == Parameter::Kind::other) continue;
    out.push_back(tensor(a, i));
  }
  return out;
}

std::int64_t Signature::largest(const Arguments& a) const {
  std::int64_t best = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (is_tensor(i)) best = std::max(best, tensor(a, i).elements);
  return best;
}

std::int64_t Signature::largest_integer(const Arguments& a) const {
  std::int64_t best = 0;
  for (std::size_t i : integers_) best = std::max(best, a.integer(i));
  return best;
}

std::vector<KeyPart> Signature::key(const Kernel& kernel) const {
  std::vector<KeyPart> parts;
  for (std::size_t i = 0; i < parameters_.size() && i < kernel.parameter_sizes.size() && i < 255;
       ++i) {
    auto index = static_cast<std::uint8_t>(i);
    std::uint16_t size = kernel.parameter_sizes[i];
    switch (parameters_[i].kind) {
      case Parameter::Kind::pointer:
        break;
      case Parameter::Kind::integer:
        parts.push_back({index, 0, size});
        break;
      case Parameter::Kind::tensor_info: {
        // ATen collapses dimensions: the first few sizes and their number say it all in practice.
        std::uint16_t width = size >= 400 ? 8 : 4;
        parts.push_back({index, 8, static_cast<std::uint16_t>(4 * width)});
        parts.push_back({index, static_cast<std::uint16_t>(8 + 50 * width), 4});
        break;
      }
      case Parameter::Kind::accessor: {
        int rank = parameters_[i].rank;
        std::uint16_t width = size >= 8 + 16 * rank ? 8 : 4;
        if (rank) parts.push_back({index, 8, static_cast<std::uint16_t>(rank * width)});
        break;
      }
      case Parameter::Kind::other:
        if (size <= 4) parts.push_back({index, 0, size});
        break;
    }
  }
  return parts;
}

Pointwise stream(const Signature& signature, const Arguments& a, std::int64_t elements,
                 Decoded& out) {
  Pointwise work;
  work.inputs = work.outputs = 0;
  std::int64_t most = 0;
  for (const Tensor& t : signature.tensors(a)) {
    if (!t.address) continue;  // optional operands
    std::int64_t n = t.elements >= 0 ? t.elements : elements;
    std::int64_t bytes = n * t.element_bytes;
    std::uint64_t extent = a.extent(t.address);
    if (static_cast<std::uint64_t>(bytes) > extent && extent > 0)
      bytes = static_cast<std::int64_t>(extent);
    most = std::max(most, t.element_bytes > 0 ? bytes / t.element_bytes : 0);
    if (t.written) {
      work.bytes_written += bytes;
      ++work.outputs;
      write(out, t.address, bytes);
      if (!out.accesses.empty()) out.accesses.back().at_least = t.elements < 0;
    } else {
      work.bytes_read += bytes;
      ++work.inputs;
      read(out, t.address, bytes);
    }
    if (work.dtype == DType::f32 && t.dtype != DType::unknown && !is_integer(t.dtype))
      work.dtype = t.dtype;
  }
  work.elements = elements > 0 ? elements : most;
  work.vector = 1;
  return work;
}

Semantics::Operand operand(const Tensor& t) {
  Semantics::Operand o;
  o.dtype = t.dtype;
  o.address = t.address;
  o.rank = std::min(t.rank, 8);
  for (int d = 0; d < o.rank;
       ++d) {  // tensors list the slowest dimension first, operands the fastest
    int from = t.rank - 1 - d;
    o.size[d] = t.size[from];
    o.stride[d] = t.stride[from] * t.element_bytes;
  }
  return o;
}

}  // namespace maya::decode
