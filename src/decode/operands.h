// Tensors among a kernel's parameters, as its signature shows them: plain pointers, ATen's
// TensorInfo and packed accessors. Which are read and which written follows from const.
#pragma once

#include "decode/rule.h"

namespace maya::decode {

struct Tensor {
  std::uint64_t address{};
  std::int64_t elements{-1};  // -1: a plain pointer, the signature does not say
  DType dtype{DType::unknown};
  int element_bytes{1};
  bool written{};
  int rank{};
  std::int64_t size[25]{}, stride[25]{};  // strides in elements
};

class Signature {
 public:
  Signature(const Kernel& kernel, const Name& name);

  struct Parameter {
    enum class Kind : std::uint8_t {
      pointer,
      tensor_info,
      accessor,
      integer,
      other
    } kind{Kind::other};
    DType dtype{DType::unknown};
    int element_bytes{1};
    int rank{};  // of an accessor
    bool written{};
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Positions of the integer scalars, in order.
  const std::vector<std::size_t>& integers() const { return integers_; }

  bool is_tensor(std::size_t i) const {
    return i < parameters_.size() && (parameters_[i].kind == Parameter::Kind::tensor_info ||
                                      parameters_[i].kind == Parameter::Kind::accessor);
  }
  Tensor tensor(const Arguments& a, std::size_t parameter) const;
  std::vector<Tensor> tensors(const Arguments& a) const;
  // Elements of the largest tensor that knows its own size; 0: none does.
  std::int64_t largest(const Arguments& a) const;
  std::int64_t largest_integer(const Arguments& a) const;

  // Scalars, and the sizes of tensors.
  std::vector<KeyPart> key(const Kernel& kernel) const;

 private:
  std::vector<Parameter> parameters_;
  std::vector<std::size_t> integers_;
};

// Every operand once over `elements` (or over its own size, if it knows it): a Pointwise.
Pointwise stream(const Signature& signature, const Arguments& a, std::int64_t elements,
                 Decoded& out);

Semantics::Operand operand(const Tensor& t);

}  // namespace maya::decode
