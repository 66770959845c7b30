#include "catalog/cluster_file.h"

#include <algorithm>

#include "catalog/fields.h"
#include "catalog/gpu_file.h"
#include "catalog/model.h"
#include "catalog/suggest.h"

namespace maya::catalog {
namespace {

constexpr const char* kDefaultHost = "generic";

template <class T>
Result<T> by_name(const std::vector<T>& all, std::string_view name, std::string_view what) {
  std::vector<std::string> names;
  for (const T& one : all) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  return Error{"unknown " + std::string(what) + " '" + std::string(name) + "'" +
               suggestion(name, names)};
}

Status load_model(Cluster& cluster, const Known& known) {
  auto numbers = model_numbers(known.directory, cluster.gpu, cluster.fabric);
  if (!numbers) return numbers.error();
  cluster.extra = *std::move(numbers);
  return {};
}

// Replaces the GPU. The machine stays the same, except for the links that belonged to the old GPU.
void exchange_gpu(Cluster& cluster, const Gpu& gpu) {
  bool had_nvlink = cluster.gpu.nvlink_gbps > 0;
  cluster.gpu = gpu;
  cluster.intra = {};
  if (had_nvlink && gpu.nvlink_gbps <= 0) {
    cluster.nvswitch = cluster.nvls = false;
    cluster.nvlink_domain = 0;
  }
  cluster.usd_per_gpu_hour = 0;
  cluster.price_source.clear();
}

Result<Cluster> start(const TomlFile& file, const Known& known) {
  Cluster cluster;
  const Entry *gpu = nullptr, *base = nullptr, *host = nullptr;
  for (const Entry& entry : file.entries) {
    if (entry.key == "gpu") gpu = &entry;
    if (entry.key == "base") base = &entry;
    if (entry.key == "host") host = &entry;
  }
  auto text = [&](const Entry& entry) -> Result<std::string> {
    if (auto* name = std::get_if<std::string>(&entry.value)) return *name;
    return Error{where(file, entry) + entry.key + ": expected a name in quotes, found " +
                 describe(entry.value)};
  };
  if (!gpu && !base)
    return Error{file.path +
                 ": the key 'gpu' is missing; write gpu = \"h100-sxm\" (see `maya gpus`)"
                 " or base = \"dgx-h100\""};
  if (base) {
    auto name = text(*base);
    if (!name) return name.error();
    auto found = by_name(known.clusters, *name, "cluster");
    if (!found) return Error{where(file, *base) + found.error().message};
    cluster = *found;
  }
  if (gpu) {
    auto name = text(*gpu);
    if (!name) return name.error();
    auto found = find_gpu(*name, known.gpus, file.path);
    if (!found) return Error{where(file, *gpu) + found.error().message};
    if (base) {
      exchange_gpu(cluster, *found);
    } else {
      cluster.gpu = *found;
    }
  }
  if (host || cluster.host.name.empty()) {
    auto name = host ? text(*host) : Result<std::string>(std::string(kDefaultHost));
    if (!name) return name.error();
    auto found = by_name(known.hosts, *name, "host");
    if (!found) return Error{(host ? where(file, *host) : "") + found.error().message};
    cluster.host = *found;
  }
  cluster.name = stem(file.path);
  return cluster;
}

}  // namespace

Result<Cluster> cluster_of(const TomlFile& file, const Known& known) {
  auto started = start(file, known);
  if (!started) return started;
  Cluster cluster = *std::move(started);
  auto is_model = [](const Entry& e) { return e.key.starts_with("network.model."); };
  // The parameters of the network model depend on the fabric, so the other keys come first.
  for (const Entry& entry : file.entries) {
    if (entry.key == "gpu" || entry.key == "base" || entry.key == "host" || is_model(entry))
      continue;
    Status status;
    if (entry.key.starts_with("gpu."))
      status = set_gpu(cluster.gpu, std::string_view(entry.key).substr(4), entry.value);
    else if (entry.key.starts_with("host."))
      status = set_host(cluster.host, std::string_view(entry.key).substr(5), entry.value);
    else
      status = set_cluster(cluster, entry.key, entry.value);
    if (!status) return Error{where(file, entry) + status.error().message};
  }
  // Without such keys the parameters are read only when the cluster is used.
  if (std::any_of(file.entries.begin(), file.entries.end(), is_model))
    if (auto status = load_model(cluster, known); !status) return status.error();
  for (const Entry& entry : file.entries)
    if (is_model(entry))
      if (auto status = set_cluster(cluster, entry.key, entry.value); !status)
        return Error{where(file, entry) + status.error().message};
  if (auto status = finish(cluster); !status)
    return Error{file.path + ": " + status.error().message};
  return cluster;
}

Result<Cluster> single_node(const Gpu& gpu, int count, const Known& known) {
  Cluster cluster;
  cluster.name = gpu.name;
  cluster.gpu = gpu;
  auto host = by_name(known.hosts, kDefaultHost, "host");
  if (!host) return host.error();
  cluster.host = *host;
  cluster.gpus_per_node = count;
  cluster.fabric = "none";
  // SXM GPUs are on a board with NVLink. PCIe cards have no bridge unless the file describes one.
  if (count > 1 && gpu.nvlink_gbps > 0 && gpu.name.find("sxm") != std::string::npos) {
    cluster.nvlink_domain = count;
    cluster.nvswitch = gpu.capability_major >= 8;
    cluster.nvls = gpu.capability_major >= 9;
  }
  if (auto status = load_model(cluster, known); !status) return status.error();
  if (auto status = finish(cluster); !status)
    return Error{gpu.name + ": " + status.error().message};
  return cluster;
}

Status apply(Cluster& cluster, const Overrides& overrides, const Known& known) {
  if (cluster.extra.empty())
    if (auto status = load_model(cluster, known); !status) return status;
  for (const auto& [key, text] : overrides) {
    Value value = value_of_text(text);
    Status status;
    if (key == "gpu") {
      auto gpu = find_gpu(text, known.gpus);
      if (gpu) {
        exchange_gpu(cluster, *gpu);
        status = load_model(cluster, known);
      } else {
        status = gpu.error();
      }
    } else if (key == "host") {
      auto host = by_name(known.hosts, text, "host");
      if (host) {
        cluster.host = *host;
      } else {
        status = host.error();
      }
    } else if (key.starts_with("gpu.")) {
      status = set_gpu(cluster.gpu, std::string_view(key).substr(4), value);
      if (key == "gpu.nvlink_gbps") cluster.intra.gbps = cluster.gpu.nvlink_gbps;
    } else if (key.starts_with("host.")) {
      status = set_host(cluster.host, std::string_view(key).substr(5), value);
    } else {
      status = set_cluster(cluster, key, value);
      if (status && key == "network.fabric") status = load_model(cluster, known);
    }
    if (!status) return Error{"--set " + key + "=" + text + ": " + status.error().message};
  }
  return finish(cluster);
}

Status finish(Cluster& c) {
  constexpr int kMost = 1 << 20;
  static const std::vector<std::string> fabrics{"none", "infiniband", "roce", "efa", "ethernet"};
  if (!(c.host.speed > 0))
    return Error{"host.speed must be above 0, found " + std::to_string(c.host.speed)};
  if (c.gpus_per_node < 1 || c.gpus_per_node > 1024)
    return Error{"gpus_per_node must be 1 to 1024, found " + std::to_string(c.gpus_per_node)};
  if (c.nodes < 1 || c.nodes > kMost / c.gpus_per_node)
    return Error{"nodes must be 1 to " + std::to_string(kMost / c.gpus_per_node) + ", found " +
                 std::to_string(c.nodes)};
  if (c.fabric.empty()) c.fabric = c.nics_per_node > 0 ? "infiniband" : "none";
  if (std::find(fabrics.begin(), fabrics.end(), c.fabric) == fabrics.end())
    return Error{"unknown network.fabric '" + c.fabric + "'" + suggestion(c.fabric, fabrics)};
  bool network = c.fabric != "none";
  if (c.nodes > 1 && !network)
    return Error{"nodes = " + std::to_string(c.nodes) +
                 " but the network between them is not described: set network.fabric, "
                 "network.nic_gbps and network.nics_per_node"};
  if (network && !(c.nic.gbps > 0))
    return Error{
        "network.nic_gbps is missing or zero: no pair of nodes could reach each other; "
        "give the card's speed in Gbit/s"};
  if (network && c.nics_per_node < 1)
    return Error{
        "network.nics_per_node is missing or zero: no pair of nodes could reach each other"};
  if (c.oversubscription < 1)
    return Error{"network.oversubscription is leaf to spine and at least 1"};
  if (c.nvls && !c.nvswitch)
    return Error{"network.nvls needs network.nvswitch = true: the switch does the reduction"};
  bool nvlink = c.gpu.nvlink_gbps > 0 && (c.nvswitch || c.nvlink_domain > 1);
  if (c.nvswitch && c.gpu.nvlink_gbps <= 0)
    return Error{"network.nvswitch = true but " + c.gpu.name + " has no NVLink"};
  if (c.nvlink_domain == 0) c.nvlink_domain = nvlink ? c.gpus_per_node : 1;
  if (c.nvlink_domain > 1 && c.nvlink_domain < c.gpus_per_node && c.gpus_per_node % c.nvlink_domain)
    return Error{"network.nvlink_domain = " + std::to_string(c.nvlink_domain) +
                 " must divide gpus_per_node = " + std::to_string(c.gpus_per_node)};
  if (!(c.intra.gbps > 0)) {
    c.intra.gbps = nvlink ? c.gpu.nvlink_gbps : c.gpu.pcie_gbps;
    if (c.intra.name.empty()) c.intra.name = nvlink ? "nvlink" : "pcie";
  }
  if (c.gpus_per_node > 1 && !(c.intra.gbps > 0))
    return Error{"network.intra_gbps is zero: no pair of GPUs of a node could reach each other"};
  if (c.usd_per_gpu_hour == 0) {
    c.usd_per_gpu_hour = c.gpu.usd_per_hour;
    if (c.price_source.empty()) c.price_source = c.gpu.price_source;
  }
  return {};
}

}  // namespace maya::catalog
