// What can be told of CUDA C++ source without compiling it: its kernels and their parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shim/nvrtc/straight.h"

namespace maya::shim::nvrtc {

struct Kernel {
  std::string name;
  std::vector<std::string> parameters;  // their types
  std::string stands_for;               // name of the precompiled kernel that does the same
  std::vector<Touched> touched{};       // by each thread; empty: the source does not tell
};

// The __global__ functions in order, each once. Comments and strings are skipped.
std::vector<Kernel> kernels(std::string_view source);

// Bytes of a parameter; 0 for a type that is defined in the source.
int bytes_of(std::string_view type);

// A symbol for a name expression such as "&ns::kernel<float, 4>": itself where it is a plain name,
// else spelled with letters, digits and underscores, so that a module loader can list it.
std::string symbol(std::string_view expression);
// The function a name expression is an instance of: "kernel".
std::string function_of(std::string_view expression);

// PTX text with an empty body for every kernel: what the module loader of the emulated driver
// takes. Decoders know by its first line that there is no code to look at.
std::string ptx(const std::vector<Kernel>& kernels, std::string_view target);

}  // namespace maya::shim::nvrtc
