// The emulated machine as nvidia-smi shows it.
#pragma once

#include <string>
#include <vector>

#include "maya/catalog.h"
#include "maya/result.h"

namespace maya::nvidia_smi {

// What a GPU does, as NVML says it (shim/nvml/condition.cpp): idle unless time is virtual.
struct Condition {
  struct Process {
    int id{};
    std::string program;
    long used_mib{};
  };
  std::vector<Process> processes;  // of the job, that hold memory
  long used_mib{};
  double busy{}, memory{};  // shares of the last second
  double watts{}, celsius{};
};

struct Machine {
  catalog::Cluster cluster;
  std::vector<int> gpus;              // indices, as narrowed by --id
  std::vector<Condition> conditions;  // by index
};

// From device.txt of the run this process belongs to.
Result<Machine> read_machine(const std::string& run_directory);

std::string uuid(const catalog::Cluster& cluster, int index);
std::string bus_id(int index);
std::string driver_version();
std::string cuda_version();
long total_mib(const catalog::Gpu& gpu);

}  // namespace maya::nvidia_smi
