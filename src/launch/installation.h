// Finds Maya's own files. The build tree, an installed prefix and the Python package have the same
// layout:
//
//   <prefix>/bin/maya   <prefix>/lib/maya/lib*.so*   <prefix>/libexec/nvidia-smi
#pragma once

#include <string>
#include <vector>

#include "maya/result.h"

namespace maya::launch {

struct Installation {
  std::string prefix;
  std::string libraries;             // <prefix>/lib/maya, or MAYA_LIB_DIR
  std::string programs;              // <prefix>/libexec, which is prepended to PATH
  std::vector<std::string> preload;  // absolute paths, the device first
};

// Uses the path of the running program. MAYA_LIB_DIR overrides the directory of the libraries.
Result<Installation> find_installation();
Result<Installation> installation_at(const std::string& prefix, const std::string& libraries = "");

std::string version();

}  // namespace maya::launch
