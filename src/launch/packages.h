// Finds shared libraries in a Python environment that cannot be emulated, by reading their ELF
// headers.
#pragma once

#include <string>
#include <vector>

namespace maya::launch {

struct UnreachedLibrary {
  enum class Kind {
    private_runtime,  // a renamed copy of libcudart inside a wheel: libcudart-d0da41ae.so.11.0
    static_runtime    // contains device code but does not link libcudart
  } kind;
  std::string path;
};

// Checks every shared library below `folder`, a site-packages directory.
std::vector<UnreachedLibrary> unreached_libraries(const std::string& folder);

}  // namespace maya::launch
