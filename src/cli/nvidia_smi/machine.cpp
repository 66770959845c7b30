#include "machine.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/visible.h"
#include "catalog/flat.h"
#include "clock/domain.h"

namespace maya::nvidia_smi {

namespace {

int node() {
  for (const char* name : {"GROUP_RANK", "NODE_RANK", "SLURM_NODEID"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return 0;
}

// The path of a program, as it was started.
std::string program_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", process));
  std::string word;
  std::getline(file, word, '\0');
  return base::visible(word);
}

Condition condition_of(const catalog::Gpu& gpu, clock::Domain* domain, int in_job) {
  clock::Load load;
  Condition condition;
  if (domain != nullptr) {
    load = domain->load(static_cast<std::uint32_t>(in_job)).at(domain->now());
    for (std::uint32_t i = 0; i < domain->members(); ++i) {
      const clock::Member& member = domain->member(i);
      const int process = member.process.load();
      const auto mib = static_cast<long>(member.used_bytes.load() >> 20);
      if (member.device.load() != in_job || mib == 0 || kill(process, 0) != 0) continue;
      condition.used_mib += mib;
      condition.processes.push_back({process, program_of(process), mib});
    }
  }
  condition.busy = load.busy, condition.memory = load.memory;
  const double idle = gpu.tdp_watts / 10;
  condition.watts = idle + (gpu.tdp_watts - idle) * load.power;
  condition.celsius = 30 + 40 * load.power;
  return condition;
}

}  // namespace

Result<Machine> read_machine(const std::string& run_directory) {
  std::string path = run_directory + "/device.txt";
  std::ifstream file(path);
  if (!file) return Error{"cannot read " + path + ", which describes the emulated machine"};
  std::stringstream text;
  text << file.rdbuf();
  auto cluster = catalog::parse_flat(text.str());
  if (!cluster) return cluster.error();
  Machine machine{*cluster, {}, {}};
  clock::Domain* domain = clock::Domain::attach(run_directory + "/clock");
  for (int i = 0; i < cluster->gpus_per_node; ++i) {
    machine.gpus.push_back(i);
    machine.conditions.push_back(
        condition_of(cluster->gpu, domain, node() * cluster->gpus_per_node + i));
  }
  return machine;
}

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
