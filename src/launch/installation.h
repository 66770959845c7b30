// Where Maya's own files are. The build tree, a prefix and the Python package look the same:
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
  std::string programs;              // <prefix>/libexec: goes in front of PATH
  std::vector<std::string> preload;  // absolute paths, the device first
};

// From the running program's own path; MAYA_LIB_DIR overrides the libraries.
Result<Installation> find_installation();
Result<Installation> installation_at(const std::string& prefix, const std::string& libraries = "");

std::string version();

}  // namespace maya::launch
