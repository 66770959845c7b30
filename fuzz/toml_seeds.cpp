#include "mutate.h"

namespace maya::fuzz {

// The catalogue's own files, smallest first in name order.
std::vector<std::string> seeds() {
  std::vector<std::string> result{
      "name = \"mine\"\ngpu = \"h100-sxm\"\nnodes = 2\ngpus_per_node = 8\n[network]\nintra_gbps = "
      "450\nnic_gbps = 50\nnics_per_node = 8\n",
      "name=h100\nmemory_gbps=3350\n"};
  for (const char* folder : {"clusters", "gpus", "hosts"})
    add_files(result, std::string("catalog/") + folder, ".toml", 3000);
  return result;
}

}  // namespace maya::fuzz
