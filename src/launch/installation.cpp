#include "launch/installation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

namespace maya::launch {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view device_library = "libmaya_device.so";

bool is_shared_library(const fs::directory_entry& entry) {
  static const std::regex name(R"(lib[^/]+\.so(\.[0-9]+)*)");
  return !entry.is_symlink() && entry.is_regular_file() &&
         std::regex_match(entry.path().filename().string(), name);
}

}  // namespace

Result<Installation> installation_at(const std::string& prefix, const std::string& libraries) {
  Installation found;
  found.prefix = prefix;
  found.libraries = libraries.empty() ? prefix + "/lib/maya" : libraries;
  found.programs = prefix + "/libexec";
  std::error_code code;
  fs::directory_iterator entries(found.libraries, code);
  if (code) {
    return Error{
        fmt::format("the emulated libraries are not in {} ({}); build them with `make build` or "
                    "reinstall maya",
                    found.libraries, code.message())};
  }
  for (const auto& entry : entries) {
    if (is_shared_library(entry)) found.preload.push_back(fs::absolute(entry.path()).string());
  }
  auto is_device = [](const std::string& path) {
    return fs::path(path).filename() == device_library;
  };
  // An extension that was not linked with the library (Transformer Engine) uses the first library
  // that has the function, so the newest version comes first.
  auto major = [](const std::string& path) {
    auto dot = path.rfind(".so.");
    return dot == std::string::npos ? 0 : std::atoi(path.c_str() + dot + 4);
  };
  auto stem = [](const std::string& path) { return path.substr(0, path.rfind(".so")); };
  std::sort(found.preload.begin(), found.preload.end(), [&](const auto& a, const auto& b) {
    if (is_device(a) != is_device(b)) return is_device(a);
    return stem(a) != stem(b) ? stem(a) < stem(b) : major(a) > major(b);
  });
  if (found.preload.empty() || !is_device(found.preload.front())) {
    return Error{fmt::format("{} has no {}; build it with `make build` or reinstall maya",
                             found.libraries, device_library)};
  }
  return found;
}

Result<Installation> find_installation() {
  std::error_code code;
  fs::path self = fs::read_symlink("/proc/self/exe", code);
  if (code)
    return Error{
        fmt::format("cannot read /proc/self/exe, which says where maya is installed ({}); PyTorch "
                    "needs /proc too: mount "
                    "it in this container (`mount -t proc proc /proc`)",
                    code.message())};
  const char* libraries = std::getenv("MAYA_LIB_DIR");
  return installation_at(self.parent_path().parent_path().string(), libraries ? libraries : "");
}

std::string version() { return MAYA_VERSION; }

}  // namespace maya::launch
