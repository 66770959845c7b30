// Makes a Cluster from a description: a file, a name or a GPU.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catalog/toml_file.h"
#include "maya/catalog.h"

namespace maya::catalog {

// The parts that a description may refer to.
struct Known {
  std::string directory;
  const std::vector<Gpu>& gpus;
  const std::vector<Host>& hosts;
  const std::vector<Cluster>& clusters;
};

using Overrides = std::vector<std::pair<std::string, std::string>>;

// From a file of catalog/clusters or of the user, with `gpu` or `base` and the keys that differ.
Result<Cluster> cluster_of(const TomlFile& file, const Known& known);
// A machine with `count` GPUs of one kind.
Result<Cluster> single_node(const Gpu& gpu, int count, const Known& known);
// Reads the parameters of the network model, then applies --set: gpu=NAME, host=NAME, gpu.…,
// host.…, network.…, nodes, gpus_per_node, ….
Status apply(Cluster& cluster, const Overrides& overrides, const Known& known);
// Fills in derived values and checks the result.
Status finish(Cluster& cluster);

}  // namespace maya::catalog
