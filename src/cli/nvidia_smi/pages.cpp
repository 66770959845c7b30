#include "pages.h"

#include <fmt/format.h>

#include <ctime>

namespace maya::nvidia_smi {

namespace {

const std::string rule(std::size_t n, char c) { return std::string(n, c); }

std::string full(char c) {
  return fmt::format("+{}+{}+{}+\n", rule(41, c), rule(24, c), rule(22, c));
}

// The best path between two GPUs of a node, in the notation of nvidia-smi.
std::string between(const catalog::Cluster& cluster, int a, int b) {
  if (a == b) return " X ";
  int domain = cluster.nvlink_domain ? cluster.nvlink_domain : cluster.gpus_per_node;
  if (cluster.gpu.nvlink_links > 0 && a / domain == b / domain) {
    return fmt::format("NV{}", cluster.nvswitch || domain <= 2 ? cluster.gpu.nvlink_links : 1);
  }
  return a / 4 == b / 4 ? "PHB" : "SYS";
}

}  // namespace

std::string table(const Machine& machine) {
  const auto& gpu = machine.cluster.gpu;
  std::time_t now = std::time(nullptr);
  char date[64];
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(date, sizeof date, "%a %b %e %H:%M:%S %Y", &local);
  std::string out = fmt::format("{}       \n", date);
  out += fmt::format("+{}+\n", rule(89, '-'));
  out += fmt::format("| NVIDIA-SMI {:<22} Driver Version: {:<14} CUDA Version: {:<8} |\n",
                     driver_version() + " (maya)", driver_version(), cuda_version());
  out += full('-');
  out +=
      "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC "
      "|\n";
  out +=
      "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. "
      "|\n";
  out +=
      "|                                         |                        |               MIG M. "
      "|\n";
  out += full('=');
  for (int i : machine.gpus) {
    auto row = [&](const std::string& left, const std::string& middle, const std::string& right) {
      out += fmt::format("| {:<39.39} | {:>22} | {:>20} |\n", left, middle, right);
    };
    row(fmt::format("{:>3}  {:<30.30} On", i, gpu.marketing), bus_id(i) + " Off", "N/A");
    const Condition& c = machine.conditions[static_cast<std::size_t>(i)];
    row(fmt::format("N/A  {:>3.0f}C    P0     {:>19}", c.celsius,
                    fmt::format("{:.0f}W / {:>4.0f}W", c.watts, gpu.tdp_watts)),
        fmt::format("{}MiB / {}MiB", c.used_mib, total_mib(gpu)),
        fmt::format("{:.0f}%      Default", 100 * c.busy));
    row("", "", "Disabled");
    out += full('-');
  }
  out += fmt::format("\n+{}+\n", rule(89, '-'));
  out += fmt::format("| {:<87} |\n", "Processes:");
  out += fmt::format(
      "| {:<87} |\n",
      " GPU   GI   CI              PID   Type   Process name                        GPU Memory");
  out += fmt::format("|{}|\n", rule(89, '='));
  bool any = false;
  for (int i : machine.gpus)
    for (const auto& process : machine.conditions[static_cast<std::size_t>(i)].processes) {
      // Long names lose their beginning, as in nvidia-smi.
      constexpr std::size_t widest = 35;
      std::string name = process.program;
      if (name.size() > widest) name = "..." + name.substr(name.size() - (widest - 3));
      out += fmt::format("| {:>4}   N/A  N/A {:>16}      C   {:<35} {:>6}MiB |\n", i, process.id,
                         name, process.used_mib);
      any = true;
    }
  if (!any) out += fmt::format("| {:<87} |\n", " No running processes found");
  out += fmt::format("+{}+\n", rule(89, '-'));
  return out;
}

std::string list(const Machine& machine) {
  std::string out;
  for (int i : machine.gpus)
    out += fmt::format("GPU {}: {} (UUID: {})\n", i, machine.cluster.gpu.marketing,
                       uuid(machine.cluster, i));
  return out;
}

std::string topology(const Machine& machine) {
  const auto& cluster = machine.cluster;
  int gpus = cluster.gpus_per_node, nics = cluster.nics_per_node;
  std::string out = "\t";
  for (int i = 0; i < gpus; ++i) out += fmt::format("GPU{}\t", i);
  for (int i = 0; i < nics; ++i) out += fmt::format("NIC{}\t", i);
  out += "CPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  auto to_nic = [&](int gpu, int nic) {
    int own = nics >= gpus ? nic * gpus / nics : gpu * nics / gpus;
    if (nics >= gpus ? own == gpu : own == nic) return "PIX";
    return gpu * 2 / std::max(gpus, 1) == nic * 2 / std::max(nics, 1) ? "NODE" : "SYS";
  };
  for (int a = 0; a < gpus; ++a) {
    out += fmt::format("GPU{}\t", a);
    for (int b = 0; b < gpus; ++b) out += between(cluster, a, b) + "\t";
    for (int n = 0; n < nics; ++n) out += std::string(to_nic(a, n)) + "\t";
    out += fmt::format("N/A\t{}\tN/A\n", a * 2 / std::max(gpus, 1));
  }
  for (int n = 0; n < nics; ++n) {
    out += fmt::format("NIC{}\t", n);
    for (int a = 0; a < gpus; ++a) out += std::string(to_nic(a, n)) + "\t";
    for (int m = 0; m < nics; ++m) {
      out += m == n ? " X \t" : (m * 2 / nics == n * 2 / nics ? "NODE\t" : "SYS\t");
    }
    out += '\n';
  }
  out +=
      "\nLegend:\n\n"
      "  X    = this device\n"
      "  SYS  = across the link between two processors\n"
      "  NODE = within one processor, across its host bridges\n"
      "  PHB  = across one host bridge\n"
      "  PIX  = across one PCIe switch at most\n"
      "  NV#  = a bonded set of # NVLinks\n";
  return out;
}

}  // namespace maya::nvidia_smi
