#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "mutate.h"

namespace maya::fuzz {

// The catalogue's own files, smallest first in name order.
std::vector<std::string> seeds() {
  std::vector<std::string> result{
      "name = \"mine\"\ngpu = \"h100-sxm\"\nnodes = 2\ngpus_per_node = 8\n[network]\nintra_gbps = "
      "450\nnic_gbps = 50\nnics_per_node = 8\n",
      "name=h100\nmemory_gbps=3350\n"};
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"clusters", "gpus", "hosts"})
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(MAYA_SOURCE_DIR "/catalog/") + folder))
      if (entry.path().extension() == ".toml" && entry.file_size() < 3000)
        paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    result.push_back(text.str());
  }
  return result;
}

}  // namespace maya::fuzz
