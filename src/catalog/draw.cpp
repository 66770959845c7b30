#include "catalog/draw.h"

#include <fmt/format.h>

#include <algorithm>

namespace maya::catalog {
namespace {

// At most eight boxes in a row stay readable in 80 columns.
constexpr int kBoxes = 8;

std::string row(int count, const char* box) {
  std::string line = "  │ ";
  for (int i = 0; i < std::min(count, kBoxes); ++i) line += box;
  if (count > kBoxes) line += fmt::format(" … {} in all", count);
  return line + "\n";
}

std::string in_node(const Cluster& c) {
  if (c.gpus_per_node == 1) return "";
  if (c.nvswitch)
    return fmt::format("  │ ══╧══ NVSwitch, {:g} GB/s each way per GPU{}{} ══\n", c.intra.gbps,
                       c.nvls ? ", reduces in the switch (NVLS)" : "",
                       c.nvlink_domain > c.gpus_per_node
                           ? fmt::format(", one domain of {} GPUs", c.nvlink_domain)
                           : "");
  if (c.nvlink_domain > 1 && c.nvlink_domain < c.gpus_per_node)
    return fmt::format(
        "  │ ══╧══ NVLink in groups of {}, {:g} GB/s; PCIe {:g} GB/s between them ══\n",
        c.nvlink_domain, c.intra.gbps, c.gpu.pcie_gbps);
  if (c.nvlink_domain > 1)
    return fmt::format("  │ ══╧══ NVLink, GPU to GPU, {:g} GB/s each way per GPU ══\n",
                       c.intra.gbps);
  return fmt::format("  │ ──┴── PCIe, {:g} GB/s each way per GPU ──\n", c.intra.gbps);
}

}  // namespace

std::string draw(const Cluster& c) {
  std::string out = fmt::format("{}: {} node{} of {} × {} = {} GPU{}\n\n", c.name, c.nodes,
                                c.nodes == 1 ? "" : "s", c.gpus_per_node, c.gpu.name,
                                c.world_size(), c.world_size() == 1 ? "" : "s");
  out += fmt::format("  ┌─ node{} ─ host {} (speed {:g})\n",
                     c.nodes > 1 ? fmt::format(" 0…{}", c.nodes - 1) : " 0", c.host.name,
                     c.host.speed);
  out += row(c.gpus_per_node, "[ GPU ] ");
  out += in_node(c);
  bool network = c.fabric != "none" && c.nics_per_node > 0;
  if (network) {
    out += row(c.nics_per_node, "( NIC ) ");
    out += "  └─────┬──────────────────────────────\n";
    out += fmt::format("        │ {} × {:g} Gb/s {}{} = {:g} GB/s each way per node\n",
                       c.nics_per_node, c.nic.gbps * 8, c.fabric,
                       c.nic.name.empty() ? "" : " (" + c.nic.name + ")",
                       c.nic.gbps * c.nics_per_node);
    if (c.rail_optimized) out += "        │ rails: card i of every node is connected to leaf i\n";
    if (c.gpus_per_leaf > 0) out += fmt::format("  ══════╧══ leaf: {} GPUs ══\n", c.gpus_per_leaf);
    if (c.oversubscription > 1)
      out += fmt::format("  ══════╧══ spine, {:g} : 1 oversubscribed ══\n", c.oversubscription);
    else
      out += "  ══════╧══ non-blocking fabric ══\n";
  } else {
    out += "  └──────────────────────────────\n";
  }
  out += fmt::format(
      "\n  GPU      {} · {} SMs · {:.1f} GiB · {:g} GB/s · {:g} W\n", c.gpu.marketing, c.gpu.sms,
      static_cast<double>(c.gpu.memory_bytes) / 1073741824.0, c.gpu.memory_gbps, c.gpu.tdp_watts);
  if (c.usd_per_gpu_hour > 0)
    out += fmt::format("  price    {:.2f} USD per GPU and hour, {:.2f} for all ({})\n",
                       c.usd_per_gpu_hour, c.usd_per_gpu_hour * c.world_size(), c.price_source);
  return out;
}

}  // namespace maya::catalog
