// What Triton's own intermediate code (TTIR) says of a kernel: its parameters by the names that its
// author gave them, and the types that pointers lead to. The machine code and its PTX have neither.
//
// Triton leaves out arguments that are None or compile-time constants, among them integers that
// happen to be 1, so parameters cannot be counted. It writes the TTIR beside the PTX; releases
// before 3.5 do not name parameters.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/rule.h"

namespace maya::decode {

struct TritonSource {
  struct Parameter {
    std::string name;
    DType element{DType::unknown};  // of a number, or of what a pointer leads to
    bool pointer{};
  };
  std::vector<Parameter> parameters;  // the first of the kernel's, side by side
  std::string text;                   // of the whole function

  // Index of a parameter; -1: the launch has none of this name.
  int find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) >= 0; }
  DType type(std::string_view name) const;
  // Of integers that are left out, 1.
  std::int64_t integer(const Arguments& a, std::string_view name) const;
  std::uint64_t pointer(const Arguments& a, std::string_view name) const;

  // For Decoder::read_only: which parameters are none of these results.
  std::vector<bool> none_of(const std::vector<std::string_view>& results) const;
  // For Decoder::key: these numbers, then all that are parameters. How many bytes.
  std::size_t key(const Arguments& a, std::initializer_list<std::int64_t> more, std::byte* out,
                  std::size_t capacity) const;
};

// Of TTIR text; empty where it has no such function, or where its parameters are not named or do
// not have these sizes.
std::optional<TritonSource> read_triton_source(std::string_view ttir, std::string_view kernel,
                                               const std::vector<std::uint16_t>& sizes);

// Of a kernel: from its `ttir`, else from Triton's cache.
std::optional<TritonSource> triton_source(const Kernel& kernel);

}  // namespace maya::decode
