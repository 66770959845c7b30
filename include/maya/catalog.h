// GPUs, hosts, links, clusters and prices, from catalog/*.toml. Every figure there names its
// source.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "maya/dtype.h"
#include "maya/result.h"

namespace maya::catalog {

struct Gpu {
  std::string name;          // "h100-sxm"
  std::string marketing;     // "NVIDIA H100 80GB HBM3", what cudaGetDeviceProperties says
  std::string also;          // other names for it, with commas: "h100, h100-80gb"
  std::string architecture;  // "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"
  int capability_major{}, capability_minor{};
  int sms{};
  double base_clock_mhz{}, boost_clock_mhz{},
      sustained_clock_mhz{};  // sustained: under tensor load
  double memory_clock_mhz{};
  int memory_bus_bits{};
  std::int64_t memory_bytes{};   // total as cudaMemGetInfo reports it
  bool ecc{};                    // error correction is on
  std::int64_t context_bytes{};  // what an empty context takes
  double memory_gbps{};          // 1e9 bytes per second, data sheet
  std::int64_t l2_bytes{};
  double l2_gbps{};  // 0: derived from SMs and clock
  std::int64_t shared_per_sm{}, shared_per_block_optin{};
  int registers_per_sm{}, max_threads_per_sm{}, max_blocks_per_sm{};
  double tdp_watts{};
  std::map<DType, double> peak_tflops;  // dense; f16/bf16/tf32/f8 on tensor cores, f32/f64 plain
  double nvlink_gbps{};                 // per GPU, one direction, all links; 0: none
  int nvlink_links{};
  double pcie_gbps{};  // one direction, effective data-sheet
  int copy_engines{2};
  double usd_per_hour{};  // on-demand list price, with date and source in the file
  std::string price_source;
  double launch_latency_us{};  // device side start of a kernel after the one before in a stream
};

struct Host {
  std::string name;
  double speed{1};           // single-thread speed against the reference host
  double launch_us{};        // host cost of one kernel launch in driver and runtime
  double graph_launch_us{};  // fixed cost of a graph launch
  double graph_node_us{};    // per node on the device
  double memcpy_us{}, event_us{}, sync_us{}, malloc_us{}, free_us{};
  int launch_queue_depth{1024};
  double pcie_gbps{};
};

struct Link {  // one kind of connection
  std::string name;
  double gbps{};  // 1e9 bytes per second, one direction
  double latency_us{};
};

struct Cluster {
  std::string name;
  Gpu gpu;
  Host host;
  int gpus_per_node{1};
  int nodes{1};
  bool nvswitch{};       // any-to-any NVLink within the node
  bool nvls{};           // in-switch reduction (SHARP)
  int nvlink_domain{0};  // GPUs in one NVLink domain; 0 = gpus_per_node (or 1 without NVLink)
  Link intra;            // between two GPUs of a node, per GPU
  Link nic;              // one network card
  int nics_per_node{0};
  std::string fabric;          // "infiniband", "roce", "efa", "ethernet", "none"
  double oversubscription{1};  // leaf to spine
  int gpus_per_leaf{0};        // 0: flat
  bool rail_optimized{};
  double usd_per_gpu_hour{};
  std::string price_source;
  std::map<std::string, double> extra;  // further numbers for the network model, by dotted key
  int world_size() const { return gpus_per_node * nodes; }
};

class Catalog {
 public:
  // Directory with gpus/, hosts/, clusters/; empty: MAYA_CATALOG, then beside the installation.
  static Result<Catalog> load(const std::string& directory = "");

  const std::vector<Gpu>& gpus() const { return gpus_; }
  const std::vector<Cluster>& clusters() const { return clusters_; }
  // Names with suggestions on error ("unknown GPU 'h10': did you mean h100-sxm?").
  Result<Gpu> gpu(std::string_view name) const;
  // SPEC: cluster[:nodes], GPU name (one GPU), or path of a TOML file.
  // `overrides`: --set key=value, e.g. network.nic_gbps=200, host.speed=1.3, gpu.memory_gbps=4000.
  Result<Cluster> cluster(
      std::string_view spec,
      const std::vector<std::pair<std::string, std::string>>& overrides = {}) const;
  // Where the files were read from, for files of other layers (fitted models).
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  std::vector<Gpu> gpus_;
  std::vector<Host> hosts_;
  std::vector<Cluster> clusters_;
};

}  // namespace maya::catalog
