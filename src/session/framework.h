// The framework of this process: which generation of libraries its kernels come from.
#pragma once

#include <string>

namespace maya::session {

// "2.15.0+cu130" of the torch whose libraries are loaded; empty: none is.
std::string torch_version();

// The version in the text of torch/version.py; empty: not found.
std::string version_in(const std::string& python);

}  // namespace maya::session
