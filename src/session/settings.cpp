#include "session/settings.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "catalog/directory.h"
#include "catalog/flat.h"

namespace maya::session {
namespace {

const char* environment(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return nullptr;
}

int number(std::initializer_list<const char*> names, int otherwise) {
  const char* value = environment(names);
  if (value == nullptr) return otherwise;
  char* end = nullptr;
  const long found = std::strtol(value, &end, 10);
  constexpr long most = 1 << 24;  // ranks of the largest job a recording can be of
  return end == value || found < 0 || found > most ? otherwise : static_cast<int>(found);
}

// "0,2", "GPU-…", "" (none) or "-1" (none); an unknown entry ends the list, as CUDA documents.
std::vector<int> visible(const char* list, int count) {
  std::vector<int> out;
  if (list == nullptr) {
    for (int i = 0; i < count; ++i) out.push_back(i);
    return out;
  }
  while (*list != '\0') {
    char* end = nullptr;
    long index = -1;
    if (std::strncmp(list, "GPU-", 4) == 0) {
      // Our UUIDs end in the device number (see the NVML entry points).
      const char* comma = std::strchr(list, ',');
      std::string uuid = comma ? std::string(list, comma) : std::string(list);
      index = uuid.size() >= 4 ? std::strtol(uuid.c_str() + uuid.size() - 4, nullptr, 16) : -1;
      end = const_cast<char*>(list) + uuid.size();
    } else {
      index = std::strtol(list, &end, 10);
      if (end == list) break;
    }
    if (index < 0 || index >= count) break;
    out.push_back(static_cast<int>(index));
    while (*end == ',' || *end == ' ') ++end;
    list = end;
  }
  return out;
}

}  // namespace

int rank_in_environment() {
  return number({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK",
                 "SLURM_PROCID"},
                -1);
}

Settings Settings::from_environment() {
  Settings s;
  const char* run = std::getenv("MAYA_RUN_DIR");
  if (run != nullptr) s.run_directory = run;
  const char* device = std::getenv("MAYA_DEVICE");
  const std::string path = device != nullptr ? device : s.run_directory + "/device.txt";
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    s.fault = "cannot read " + path + " (start the program with `maya run`)";
    return s;
  }
  std::string text((std::istreambuf_iterator<char>(in)), {});
  auto cluster = catalog::parse_flat(text);
  if (!cluster) {
    s.fault = path + ": " + cluster.error().message;
    return s;
  }
  s.cluster = *cluster;
  if (auto directory = catalog::find_directory()) s.models_directory = *directory;

  s.rank = rank_in_environment();
  s.local_rank = number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                         "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"},
                        -1);
  s.world_size = number(
      {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"}, 1);
  if (s.world_size < 1) s.world_size = 1;
  s.node = number({"GROUP_RANK", "OMPI_COMM_WORLD_NODE_RANK", "SLURM_NODEID", "NODE_RANK"}, 0);
  s.devices = visible(std::getenv("CUDA_VISIBLE_DEVICES"), s.cluster.gpus_per_node);
  if (const char* limit = std::getenv("MAYA_VALUE_LIMIT"))
    s.value_limit = std::strtoull(limit, nullptr, 10);
  if (const char* log = std::getenv("MAYA_LOG")) {
    s.log_warnings = std::strcmp(log, "warn") == 0 || std::strcmp(log, "debug") == 0;
    s.log_calls = std::strcmp(log, "debug") == 0;
  }
  return s;
}

}  // namespace maya::session
