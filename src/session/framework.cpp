#include "session/framework.h"

#include <link.h>

#include <fstream>
#include <sstream>

namespace maya::session {

std::string version_in(const std::string& python) {
  const auto name = python.find("__version__ =");
  if (name == python.npos) return {};
  const auto begin = python.find_first_of("'\"", name);
  if (begin == python.npos) return {};
  const auto end = python.find(python[begin], begin + 1);
  return end == python.npos || end - begin > 64 ? "" : python.substr(begin + 1, end - begin - 1);
}

std::string torch_version() {
  std::string folder;  // of the Python package
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        const std::string path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const auto at = path.rfind("/torch/lib/libtorch");
        if (at == path.npos) return 0;
        *static_cast<std::string*>(out) = path.substr(0, at) + "/torch";
        return 1;
      },
      &folder);
  if (folder.empty()) return {};
  std::ifstream in(folder + "/version.py");
  std::ostringstream text;
  text << in.rdbuf();
  return version_in(text.str());
}

}  // namespace maya::session
