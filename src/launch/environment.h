// The environment a training command gets: the user's own, with the emulated libraries in front.
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

struct Settings {
  std::string run_directory;  // absolute
  std::string catalogue;      // where the estimator's models are, for times asked during the run
  int rendezvous_port{};      // default port for torchrun's own store; 0: leave alone
  std::string ranks;          // those that run, "0,1,8"; empty: all
  std::string places;         // where only those are started: "ranks of the job:of a node"
};

// Adds to `user`, never takes away:
//   LD_PRELOAD           every emulated library, then what the user preloads
//   LD_LIBRARY_PATH, PATH, TRITON_LIBCUDA_PATH   our directories first
//   USE_PYTORCH_KERNEL_CACHE, CUPY_CACHE_IN_MEMORY   nothing compiled here outlives the run
//   VLLM_CACHE_ROOT, FLASHINFER_WORKSPACE_BASE, …   unless set: caches of serving engines, apart
//                        from those of runs on real GPUs
//   MAYA_RUN_DIR, MAYA_LIB_DIR, MAYA_CATALOG
//   MAYA_RANKS, MAYA_PLACES   where only some ranks run
//   PET_MASTER_PORT      unless set: two runs at once must not meet on torchrun's default port
Result<Environment> training_environment(Environment user, const Installation& installation,
                                         const Settings& settings);

// What to say of libraries the user preloads already. They are kept, after ours.
struct PreloadRemark {
  std::string text;
  bool conflict{};  // it will not work as its owner meant
};
std::vector<PreloadRemark> preload_remarks(const Environment& user);

std::vector<std::string> as_block(const Environment& environment);  // "NAME=value"

}  // namespace maya::launch
