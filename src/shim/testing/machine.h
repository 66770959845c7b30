// For tests: the process becomes one on an emulated machine, as the launcher would make it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "catalog/flat.h"
#include "maya/catalog.h"

namespace maya::shim {

// Call before the first entry point. `spec`: a cluster or GPU of the catalogue. Nothing is
// recorded.
inline bool pretend(const std::string& spec, const std::string& catalog_directory) {
  auto catalog = catalog::Catalog::load(catalog_directory);
  if (!catalog) return false;
  auto cluster = catalog->cluster(spec);
  if (!cluster) return false;
  // Until the process ends: children of a test read it too.
  static const struct Description {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("maya-shim-test-" + std::to_string(::getpid()));
    pid_t owner = ::getpid();
    ~Description() {
      std::error_code ignored;
      if (::getpid() == owner) std::filesystem::remove(path, ignored);
    }
  } description;
  std::ofstream(description.path) << catalog::to_flat(*cluster);
  ::setenv("MAYA_DEVICE", description.path.c_str(), 1);
  return true;
}

}  // namespace maya::shim
