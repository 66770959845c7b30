// The environment of the training command: that of the user, with the emulated libraries added.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/installation.h"
#include "launchers/launcher.h"
#include "maya/result.h"

namespace maya::launch {

using launchers::Environment;

Environment current_environment();

struct EnvironmentSettings {
  std::string run_directory;  // absolute
  std::string catalogue;      // for predictions during the run (--clock virtual)
  int rendezvous_port{};      // default port of torchrun's store; 0: not changed
  std::string ranks;          // the ranks that run, "0,1,8"; empty: all
  std::string places;         // if only these are started: "ranks of the job:ranks of a node"
};

// Adds these variables to `user` and removes none:
//   LD_PRELOAD           every emulated library, then what the user preloads
//   LD_LIBRARY_PATH, PATH, TRITON_LIBCUDA_PATH   our directories first
//   USE_PYTORCH_KERNEL_CACHE, CUPY_CACHE_IN_MEMORY   no cache of compiled kernels on disk
//   VLLM_CACHE_ROOT, FLASHINFER_WORKSPACE_BASE, …   unless set: caches of serving engines, separate
//                        from those of runs on real GPUs
//   MAYA_RUN_DIR, MAYA_LIB_DIR, MAYA_CATALOG
//   MAYA_RANKS, MAYA_PLACES   if only some ranks run
//   PET_MASTER_PORT      unless set: concurrent runs must not use the same port of torchrun
Result<Environment> training_environment(Environment user, const Installation& installation,
                                         const EnvironmentSettings& settings);

// Remarks about libraries that the user already preloads. They are kept, after ours.
struct PreloadRemark {
  std::string text;
  bool conflict{};  // the user's library will not work as intended
};
std::vector<PreloadRemark> preload_remarks(const Environment& user);

std::vector<std::string> as_block(const Environment& environment);  // "NAME=value"

}  // namespace maya::launch
