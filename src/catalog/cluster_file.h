// From a cluster's description (a file, a name, a GPU) to a resolved Cluster.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/toml_file.h"
#include "maya/catalog.h"

namespace maya::catalog {

// What a description may refer to.
struct Known {
  std::string directory;
  const std::vector<Gpu>& gpus;
  const std::vector<Host>& hosts;
  const std::vector<Cluster>& clusters;
};

using Overrides = std::vector<std::pair<std::string, std::string>>;

// A file of catalog/clusters or a user's: `gpu` or `base`, then anything that differs.
Result<Cluster> cluster_of(const TomlFile& file, const Known& known);
// `count` GPUs of one kind in one machine.
Result<Cluster> single_node(const Gpu& gpu, int count, const Known& known);
// Reads the network model's numbers, then --set: gpu=NAME, host=NAME, gpu.…, host.…, network.…,
// nodes, gpus_per_node, ….
Status apply(Cluster& cluster, const Overrides& overrides, const Known& known);
// Fills what follows from the rest, then checks the whole.
Status finish(Cluster& cluster);

}  // namespace maya::catalog
