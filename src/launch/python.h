// What a Python environment holds, without importing torch: its files say enough.
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
  std::string include;                       // folder of Python.h, empty: not there
  std::vector<std::string> nvidia_packages;  // "nvidia-cublas 13.4.1.3"
  std::vector<std::string> missing;          // what torch imports and is not there
  std::vector<std::string> packages;         // training packages, "deepspeed 0.18.2"
  std::string site;                          // its site-packages
};

Result<Python> inspect_python(const std::string& path);

// The Python that would run a command: "python x.py", "torchrun x.py" (from its first line), or
// none.
std::optional<std::string> python_of(const Executable& executable);

}  // namespace maya::launch
