#include "launch/jax.h"

#include <filesystem>

namespace maya::launch {

namespace fs = std::filesystem;

std::optional<Jax> find_jax(const Python& python, const std::string& path) {
  Jax jax;
  for (const auto& package : python.packages) {
    auto space = package.find(' ');
    std::string name = package.substr(0, space);
    std::string version = space == std::string::npos ? "" : package.substr(space + 1);
    if (name == "jax") jax.version = version;
    for (int major : {12, 13}) {
      std::string dashed = "jax-cuda" + std::to_string(major) + "-plugin";
      if (name == dashed || name == "jax_cuda" + std::to_string(major) + "_plugin") {
        jax.cuda_major = major;
        jax.plugin = version;
      }
    }
  }
  if (jax.version.empty()) return std::nullopt;
  // XLA looks in NVIDIA's packages beside it, in PATH, and in the usual places of a CUDA toolkit.
  std::error_code ignored;
  for (const char* folder : {"/nvidia/cu13/bin", "/nvidia/cuda_nvcc/bin", "/nvidia/cu12/bin"}) {
    std::string candidate = python.site + folder + "/ptxas";
    if (jax.ptxas.empty() && fs::exists(candidate, ignored)) jax.ptxas = candidate;
  }
  if (jax.ptxas.empty()) {
    if (auto found = find_executable("ptxas", path + ":/usr/local/cuda/bin:/opt/cuda/bin"))
      jax.ptxas = found->path;
  }
  return jax;
}

}  // namespace maya::launch
