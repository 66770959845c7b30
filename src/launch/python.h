// Describes a Python environment from its files, without importing torch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/executable.h"
#include "maya/result.h"

namespace maya::launch {

struct Torch {
  std::string location;  // the package's folder
  std::string version;   // "2.15.0+cu132"
  std::string cuda;      // "13.2"; empty: a build without CUDA
  std::string rocm;      // set in a ROCm build
};

struct Python {
  std::string path;
  std::string version;
  std::optional<Torch> torch;
  std::string triton;                        // version, empty: not installed
  std::string include;                       // folder of Python.h, empty: not installed
  std::vector<std::string> nvidia_packages;  // "nvidia-cublas 13.4.1.3"
  std::vector<std::string> missing;          // packages that torch imports and are not installed
  std::vector<std::string> packages;         // training packages, "deepspeed 0.18.2"
  std::string site;                          // its site-packages
};

Result<Python> inspect_python(const std::string& path);

// The Python that would run a command: that of "python x.py", or of "torchrun x.py" from the first
// line of torchrun. nullopt if Python does not run it.
std::optional<std::string> python_of(const Executable& executable);

}  // namespace maya::launch
