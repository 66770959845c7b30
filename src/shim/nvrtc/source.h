// What can be told of CUDA C++ source without compiling it: the names of its kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maya::shim::nvrtc {

// Names of the __global__ functions in order, each once. Comments and strings are skipped.
std::vector<std::string> kernels(std::string_view source);

// A symbol for a name expression such as "&ns::kernel<float, 4>": itself where it is a plain name,
// else spelled with letters, digits and underscores, so that a module loader can list it.
std::string symbol(std::string_view expression);

// PTX text with an empty body for every name: what the module loader of the emulated driver takes.
std::string ptx(const std::vector<std::string>& names, std::string_view target);

}  // namespace maya::shim::nvrtc
