// The hardware catalogue: GPUs, hosts, links, clusters and prices, read from catalog/*.toml. Every
// figure in those files names its source.
//
//   auto catalog = catalog::Catalog::load();
//   if (!catalog) return catalog.error();
//   auto cluster = catalog->cluster("dgx-h100:4", {{"network.nic_gbps", "100"}});
//
// Units are in the names of the fields: gbps is 1e9 bytes (not bits) per second in one direction,
// us is microseconds, mhz is 1e6 per second. All structs are plain values. A Catalog does not
// change after load() and may be used from several threads.
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
  std::string marketing;     // "NVIDIA H100 80GB HBM3", as cudaGetDeviceProperties reports it
  std::string also;          // aliases, separated by commas: "h100, h100-80gb"
  std::string architecture;  // "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"
  int capability_major{}, capability_minor{};
  int sms{};
  double base_clock_mhz{}, boost_clock_mhz{};
  double sustained_clock_mhz{};  // what the GPU holds under continuous tensor-core load
  double memory_clock_mhz{};
  int memory_bus_bits{};
  std::int64_t memory_bytes{};   // total as cudaMemGetInfo reports it
  bool ecc{};                    // error correction is enabled
  std::int64_t context_bytes{};  // memory taken by an empty CUDA context
  double memory_gbps{};          // peak of the data sheet
  std::int64_t l2_bytes{};
  double l2_gbps{};  // 0: derived from SMs and clock
  std::int64_t shared_per_sm{}, shared_per_block_optin{};
  int registers_per_sm{}, max_threads_per_sm{}, max_blocks_per_sm{};
  double tdp_watts{};
  // Dense peak. f16, bf16, tf32 and f8 on tensor cores; f32 and f64 on the ordinary cores.
  std::map<DType, double> peak_tflops;
  double nvlink_gbps{};  // per GPU, all links together; 0: no NVLink
  int nvlink_links{};
  double pcie_gbps{};
  int copy_engines{2};
  double usd_per_hour{};  // on-demand list price; its date and source are in the file
  std::string price_source;
  double launch_latency_us{};  // gap on the device between two consecutive kernels of a stream
};

struct Host {
  std::string name;
  double speed{1};           // single-thread speed relative to the reference host
  double launch_us{};        // time of the host in driver and runtime per kernel launch
  double graph_launch_us{};  // fixed time of the host per graph launch
  double graph_node_us{};    // time on the device per node of a graph
  double memcpy_us{}, event_us{}, sync_us{}, malloc_us{}, free_us{};
  int launch_queue_depth{1024};  // launches that may be pending before the host blocks
  double pcie_gbps{};
  int cores{64};            // of the whole machine, without hyper-threads
  double memory_gbps{300};  // of the whole machine
  double core_gbps{12};     // what one core draws of it
};

struct Link {  // one kind of connection
  std::string name;
  double gbps{};
  double latency_us{};
};

struct Cluster {
  std::string name;
  Gpu gpu;
  Host host;
  int gpus_per_node{1};
  int nodes{1};
  bool nvswitch{};       // any two GPUs of a node communicate at full NVLink bandwidth
  bool nvls{};           // the switch reduces data itself (NVLink SHARP)
  int nvlink_domain{0};  // GPUs in one NVLink domain; 0: gpus_per_node, or 1 without NVLink
  Link intra;            // between GPUs of a node; the bandwidth is per GPU
  Link nic;              // one network interface card
  int nics_per_node{0};
  std::string fabric;          // "infiniband", "roce", "efa", "ethernet", "none"
  double oversubscription{1};  // bandwidth below a leaf switch / bandwidth from leaf to spine
  int gpus_per_leaf{0};        // 0: all GPUs are below one switch
  bool rail_optimized{};       // NIC i of every node is connected to the same leaf switch
  double usd_per_gpu_hour{};
  std::string price_source;
  // Parameters of the network and overlap models, by dotted key (see maya/simulate.h).
  std::map<std::string, double> extra;
  int world_size() const { return gpus_per_node * nodes; }
};

class Catalog {
 public:
  // Reads gpus/, hosts/ and clusters/ below `directory`. If it is empty: below $MAYA_CATALOG, else
  // below the catalogue of the installation. The error names the file and the key at fault.
  static Result<Catalog> load(const std::string& directory = "");

  const std::vector<Gpu>& gpus() const { return gpus_; }
  const std::vector<Cluster>& clusters() const { return clusters_; }
  // Looks a GPU up by name or alias. The error suggests similar names ("unknown GPU 'h10': did you
  // mean h100-sxm?").
  Result<Gpu> gpu(std::string_view name) const;
  // `spec` is a cluster with an optional node count ("dgx-h100:4"), a GPU (a cluster of one GPU),
  // or the path of a TOML file. `overrides` are the pairs of --set, for example
  // network.nic_gbps=200, host.speed=1.3 or gpu.memory_gbps=4000.
  Result<Cluster> cluster(
      std::string_view spec,
      const std::vector<std::pair<std::string, std::string>>& overrides = {}) const;
  // The directory that was read. Other layers keep files there too (fitted models).
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
  std::vector<Gpu> gpus_;
  std::vector<Host> hosts_;
  std::vector<Cluster> clusters_;
};

}  // namespace maya::catalog
