#include "machine.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "catalog/flat.h"

namespace maya::nvidia_smi {

Result<Machine> read_machine(const std::string& run_directory) {
  std::string path = run_directory + "/device.txt";
  std::ifstream file(path);
  if (!file) return Error{"cannot read " + path + ", which describes the emulated machine"};
  std::stringstream text;
  text << file.rdbuf();
  auto cluster = catalog::parse_flat(text.str());
  if (!cluster) return cluster.error();
  Machine machine{*cluster, {}};
  for (int i = 0; i < cluster->gpus_per_node; ++i) machine.gpus.push_back(i);
  return machine;
}

namespace {

int node() {
  for (const char* name : {"GROUP_RANK", "NODE_RANK", "SLURM_NODEID"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return 0;
}

}  // namespace

// The same UUID as in NVML and in the CUDA entry points. A test checks that they agree.
std::string uuid(const catalog::Cluster& cluster, int index) {
  return fmt::format("GPU-4d617961-456d-756c-8001-00000000{:04x}",
                     index + node() * cluster.gpus_per_node);
}

std::string bus_id(int index) { return fmt::format("00000000:{:02X}:00.0", 0x10 + 8 * index); }

std::string driver_version() { return "595.45.04"; }
std::string cuda_version() { return "13.2"; }

long total_mib(const catalog::Gpu& gpu) { return static_cast<long>(gpu.memory_bytes >> 20); }

}  // namespace maya::nvidia_smi
