#include "machine.h"

#include <fmt/format.h>

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

// The same identity NVML and the CUDA entry points give: it ends in the device's number.
std::string uuid(int index) {
  return fmt::format("GPU-6d617961-0000-4000-8000-00000000{:04x}", index);
}

std::string bus_id(int index) { return fmt::format("00000000:{:02X}:00.0", 0x10 + index); }

std::string driver_version() { return "580.95.05"; }
std::string cuda_version() { return "13.2"; }

long total_mib(const catalog::Gpu& gpu) { return static_cast<long>(gpu.memory_bytes >> 20); }

}  // namespace maya::nvidia_smi
