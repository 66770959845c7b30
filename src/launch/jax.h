// JAX in a Python environment: which CUDA its plug-in is for, and the assembler XLA will start.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/python.h"

namespace maya::launch {

struct Jax {
  std::string version;
  int cuda_major{};    // of its plug-in; 0: none, it computes on the CPU
  std::string plugin;  // version of the plug-in
  std::string ptxas;   // path; empty: XLA will not find one
};

// Nothing when JAX is not installed. `path` is the search path for programs.
std::optional<Jax> find_jax(const Python& python, const std::string& path);

}  // namespace maya::launch
