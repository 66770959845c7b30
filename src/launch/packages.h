// Shared libraries in a Python environment that emulation cannot reach, found by their headers
// alone.
#pragma once

#include <string>
#include <vector>

namespace maya::launch {

struct UnreachedLibrary {
  enum class Kind {
    private_runtime,  // a renamed copy of libcudart inside a wheel: libcudart-d0da41ae.so.11.0
    static_runtime    // device code of its own and no libcudart to bring it to the GPU
  } kind;
  std::string path;
};

// Looks through every shared library below `folder`, a site-packages.
std::vector<UnreachedLibrary> unreached_libraries(const std::string& folder);

}  // namespace maya::launch
