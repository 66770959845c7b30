// Lists the fields of the catalogue's structs. The TOML loader, --set and the flat file all use
// these lists, so a field that is added here can be read, overridden and passed to a training
// process. Each function calls f(key, member, unit) for every field.
#pragma once

#include "maya/catalog.h"

namespace maya::catalog {

enum class Unit {
  text,
  flag,
  count,
  number,
  mhz,
  bytes,
  gbytes,  // 1e9 bytes per second
  gbits,   // 1e9 bits per second in files (usual for network cards), bytes in memory
  us,
  watts,
  usd,
};

template <class S, class F>
void each_gpu(S& g, F&& f) {
  f("name", g.name, Unit::text), f("marketing", g.marketing, Unit::text);
  f("also", g.also, Unit::text);
  f("architecture", g.architecture, Unit::text);
  f("capability_major", g.capability_major, Unit::count);
  f("capability_minor", g.capability_minor, Unit::count), f("sms", g.sms, Unit::count);
  f("base_clock_mhz", g.base_clock_mhz, Unit::mhz);
  f("boost_clock_mhz", g.boost_clock_mhz, Unit::mhz);
  f("sustained_clock_mhz", g.sustained_clock_mhz, Unit::mhz);
  f("memory_clock_mhz", g.memory_clock_mhz, Unit::mhz);
  f("memory_bus_bits", g.memory_bus_bits, Unit::count);
  f("ecc", g.ecc, Unit::flag);
  f("memory_bytes", g.memory_bytes, Unit::bytes), f("context_bytes", g.context_bytes, Unit::bytes);
  f("memory_gbps", g.memory_gbps, Unit::gbytes), f("l2_bytes", g.l2_bytes, Unit::bytes);
  f("l2_gbps", g.l2_gbps, Unit::gbytes), f("shared_per_sm", g.shared_per_sm, Unit::bytes);
  f("shared_per_block_optin", g.shared_per_block_optin, Unit::bytes);
  f("registers_per_sm", g.registers_per_sm, Unit::count);
  f("max_threads_per_sm", g.max_threads_per_sm, Unit::count);
  f("max_blocks_per_sm", g.max_blocks_per_sm, Unit::count);
  f("tdp_watts", g.tdp_watts, Unit::watts), f("nvlink_gbps", g.nvlink_gbps, Unit::gbytes);
  f("nvlink_links", g.nvlink_links, Unit::count), f("pcie_gbps", g.pcie_gbps, Unit::gbytes);
  f("copy_engines", g.copy_engines, Unit::count), f("usd_per_hour", g.usd_per_hour, Unit::usd);
  f("price_source", g.price_source, Unit::text);
  f("launch_latency_us", g.launch_latency_us, Unit::us);
}

template <class S, class F>
void each_host(S& h, F&& f) {
  f("name", h.name, Unit::text), f("speed", h.speed, Unit::number);
  f("launch_us", h.launch_us, Unit::us), f("graph_launch_us", h.graph_launch_us, Unit::us);
  f("graph_node_us", h.graph_node_us, Unit::us), f("memcpy_us", h.memcpy_us, Unit::us);
  f("event_us", h.event_us, Unit::us), f("sync_us", h.sync_us, Unit::us);
  f("malloc_us", h.malloc_us, Unit::us), f("free_us", h.free_us, Unit::us);
  f("launch_queue_depth", h.launch_queue_depth, Unit::count);
  f("pcie_gbps", h.pcie_gbps, Unit::gbytes), f("cores", h.cores, Unit::count);
  f("memory_gbps", h.memory_gbps, Unit::gbytes), f("core_gbps", h.core_gbps, Unit::gbytes);
}

// The keys of the cluster itself. `gpu` and `host` are names in files and tables in overrides.
template <class S, class F>
void each_cluster(S& c, F&& f) {
  f("name", c.name, Unit::text), f("gpus_per_node", c.gpus_per_node, Unit::count);
  f("nodes", c.nodes, Unit::count), f("usd_per_gpu_hour", c.usd_per_gpu_hour, Unit::usd);
  f("price_source", c.price_source, Unit::text);
  f("network.nvswitch", c.nvswitch, Unit::flag), f("network.nvls", c.nvls, Unit::flag);
  f("network.nvlink_domain", c.nvlink_domain, Unit::count);
  f("network.intra", c.intra.name, Unit::text);
  f("network.intra_gbps", c.intra.gbps, Unit::gbytes);
  f("network.intra_latency_us", c.intra.latency_us, Unit::us);
  f("network.nic", c.nic.name, Unit::text), f("network.nic_gbps", c.nic.gbps, Unit::gbits);
  f("network.nic_latency_us", c.nic.latency_us, Unit::us);
  f("network.nics_per_node", c.nics_per_node, Unit::count);
  f("network.fabric", c.fabric, Unit::text);
  f("network.oversubscription", c.oversubscription, Unit::number);
  f("network.gpus_per_leaf", c.gpus_per_leaf, Unit::count);
  f("network.rail_optimized", c.rail_optimized, Unit::flag);
}

}  // namespace maya::catalog
