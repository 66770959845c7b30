#include "catalog/directory.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace maya::catalog {
namespace {

namespace fs = std::filesystem;

bool holds_catalogue(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path / "gpus", ignored);
}

}  // namespace

Result<std::string> find_directory() {
  if (const char* set = std::getenv("MAYA_CATALOG"); set && *set) {
    if (!holds_catalogue(set))
      return Error{"MAYA_CATALOG is '" + std::string(set) +
                   "', which has no folder gpus/; set it to a catalogue directory or unset it"};
    return std::string(set);
  }
  std::error_code ignored;
  Dl_info info{};
  fs::path binary;
  // dladdr works for an executable and for a shared library.
  if (dladdr(reinterpret_cast<void*>(&find_directory), &info) && info.dli_fname)
    binary = fs::canonical(info.dli_fname, ignored);
  if (binary.empty()) binary = fs::canonical("/proc/self/exe", ignored);
  for (fs::path folder = binary.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* below : {"share/maya/catalog", "catalog"})
      if (holds_catalogue(folder / below)) return (folder / below).string();
    if (folder == folder.root_path()) break;
  }
#ifdef MAYA_BUILD_CATALOG
  if (holds_catalogue(MAYA_BUILD_CATALOG)) return std::string(MAYA_BUILD_CATALOG);
#endif
  return Error{
      "no catalogue found: looked for share/maya/catalog and catalog in the folders above " +
      binary.string() + "; set MAYA_CATALOG to the catalogue directory"};
}

}  // namespace maya::catalog
