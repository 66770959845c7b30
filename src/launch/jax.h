// JAX in a Python environment: the CUDA version of its plug-in, and the assembler that XLA uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/python.h"

namespace maya::launch {

struct Jax {
  std::string version;
  int cuda_major{};    // of its plug-in; 0: no plug-in, JAX uses the CPU
  std::string plugin;  // version of the plug-in
  std::string ptxas;   // path; empty: XLA will not find one
};

// nullopt if JAX is not installed. `path` is the search path for programs.
std::optional<Jax> find_jax(const Python& python, const std::string& path);

}  // namespace maya::launch
