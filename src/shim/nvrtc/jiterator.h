// The kernels PyTorch writes and compiles at run time ("jiterator": complex numbers, special
// functions, products): they follow two templates, and do what kernels of its libraries do.
#pragma once

#include <string>
#include <string_view>

#include "shim/nvrtc/source.h"

namespace maya::shim::nvrtc {

// The name of the precompiled kernel with the same parameters, but for a functor; empty for source
// that is not of these templates. `at`: where its parameters begin in the source.
std::string precompiled_twin(const Kernel& kernel, std::string_view source, std::size_t at);

}  // namespace maya::shim::nvrtc
