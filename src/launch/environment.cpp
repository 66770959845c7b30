#include "launch/environment.h"

#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

namespace maya::launch {

namespace {

void put_first(Environment& environment, const std::string& name, const std::string& directory) {
  std::string& value = environment[name];
  value = value.empty() ? directory : directory + ":" + value;
}

// LD_PRELOAD is separated by spaces and colons and has no quoting. For a path with a space the file
// name alone is used, which is found through LD_LIBRARY_PATH. A path with a colon cannot be used,
// because LD_LIBRARY_PATH is separated by colons too.
Result<std::string> preload_list(const Installation& installation) {
  const std::string& directory = installation.libraries;
  if (directory.find_first_of(":;") != std::string::npos) {
    return Error{fmt::format(
        "the emulated libraries are in {}, and the loader cannot preload from a path with "
        "a colon or semicolon; move the installation",
        directory)};
  }
  std::vector<std::string> names;
  bool bare = directory.find(' ') != std::string::npos;
  for (const auto& path : installation.preload) {
    names.push_back(bare ? std::filesystem::path(path).filename().string() : path);
  }
  return fmt::format("{}", fmt::join(names, ":"));
}

// Serving engines and their kernel libraries cache what they compile and measure. Results that were
// measured on an emulated GPU must not be used by a run on a real one.
void keep_caches_apart(Environment& user, const std::string& run_directory) {
  const std::string caches = run_directory + "/caches";
  static constexpr struct {
    const char *variable, *folder;
  } redirected[] = {{"VLLM_CACHE_ROOT", "/vllm"},
                    {"SGLANG_CACHE_DIR", "/sglang"},
                    {"SGLANG_JIT_CACHE_DIR", "/sglang-jit"},
                    {"SGLANG_DG_CACHE_DIR", "/deep_gemm"},
                    {"DG_JIT_CACHE_DIR", "/deep_gemm"},
                    {"TILELANG_CACHE_DIR", "/tilelang"}};
  for (const auto& [variable, folder] : redirected) user.emplace(variable, caches + folder);
  // FlashInfer's cache contains compiled code, which takes minutes to build, and no measurements.
  // All runs on emulated GPUs share it.
  std::string shared = caches;
  if (const auto home = user.find("HOME"); home != user.end() && !home->second.empty())
    shared = home->second + "/.cache/maya";
  if (const auto given = user.find("XDG_CACHE_HOME"); given != user.end() && !given->second.empty())
    shared = given->second + "/maya";
  user.emplace("FLASHINFER_WORKSPACE_BASE", shared + "/flashinfer");
}

}  // namespace

Environment current_environment() {
  Environment result;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals != std::string_view::npos) {
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return result;
}

Result<Environment> training_environment(Environment user, const Installation& installation,
                                         const EnvironmentSettings& settings) {
  auto preload = preload_list(installation);
  if (!preload) return preload.error();
  put_first(user, "LD_PRELOAD", *preload);
  put_first(user, "LD_LIBRARY_PATH", installation.libraries);
  if (!user.contains("PATH")) user["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  put_first(user, "PATH", installation.programs);
  user["TRITON_LIBCUDA_PATH"] = installation.libraries;
  // Header-only NVTX finds its tool through this variable. A tool of the user is kept.
  user.emplace("NVTX_INJECTION64_PATH", installation.libraries + "/libnvToolsExt.so.1");
  // The output of the emulated NVRTC contains no code and must not be in a cache that runs on real
  // GPUs use.
  user["USE_PYTORCH_KERNEL_CACHE"] = "0";
  user["CUPY_CACHE_IN_MEMORY"] = "1";
  keep_caches_apart(user, settings.run_directory);
  user["MAYA_RUN_DIR"] = settings.run_directory;
  user["MAYA_LIB_DIR"] = installation.libraries;
  user["MAYA_CATALOG"] = settings.catalogue;
  for (const char* name : {"MAYA_RANKS", "MAYA_PLACES", "MAYA_AWAY", "MAYA_RANK_PROCESS"})
    user.erase(name);
  if (!settings.ranks.empty()) user["MAYA_RANKS"] = settings.ranks;
  if (!settings.places.empty()) user["MAYA_PLACES"] = settings.places;
  // torch makes large communicators from ids of every 128th rank. If only some ranks run, the first
  // rank, which always runs, makes the only id.
  if (!settings.ranks.empty()) user.emplace("TORCH_NCCL_RANKS_PER_ROOT", "4194304");
  if (settings.rendezvous_port) {
    user.emplace("PET_MASTER_PORT", std::to_string(settings.rendezvous_port));
  }
  return user;
}

std::vector<PreloadRemark> preload_remarks(const Environment& user) {
  auto set = user.find("LD_PRELOAD");
  if (set == user.end()) return {};
  std::vector<PreloadRemark> remarks;
  std::vector<std::string> kept;
  std::string rest = set->second;
  while (!rest.empty()) {
    auto end = rest.find_first_of(" :");
    std::string path = rest.substr(0, end);
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
    if (path.empty()) continue;
    std::string name = std::filesystem::path(path).filename();
    auto starts_with_any = [&](std::initializer_list<const char*> starts) {
      return std::any_of(starts.begin(), starts.end(),
                         [&](const char* start) { return name.rfind(start, 0) == 0; });
    };
    if (starts_with_any({"libasan", "libtsan", "libhwasan", "libmsan"})) {
      remarks.push_back({fmt::format("LD_PRELOAD contains {}, which must be loaded first and "
                                     "refuses to start; do not use "
                                     "the sanitizer with `maya run`",
                                     path),
                         true});
    } else if (starts_with_any({"libmaya_device"})) {
      remarks.push_back({fmt::format("LD_PRELOAD already contains {}: this is a `maya run` inside "
                                     "another, and the inner one "
                                     "records",
                                     path),
                         true});
    } else if (starts_with_any({"libcuda.", "libcudart.", "libcublas", "libcudnn", "libnccl.",
                                "libcufft", "libcurand", "libcusolver", "libcusparse", "libnvrtc",
                                "libnvidia-ml", "libcupti"})) {
      remarks.push_back(
          {fmt::format(
               "LD_PRELOAD contains {}; the emulated library of the same kind is used first", path),
           true});
    } else {
      kept.push_back(path);
    }
  }
  if (!kept.empty())
    remarks.push_back({fmt::format("your LD_PRELOAD is kept, after the emulated libraries: {}",
                                   fmt::join(kept, ":")),
                       false});
  return remarks;
}

std::vector<std::string> as_block(const Environment& environment) {
  std::vector<std::string> block;
  block.reserve(environment.size());
  for (const auto& [name, value] : environment) block.push_back(name + "=" + value);
  return block;
}

}  // namespace maya::launch
