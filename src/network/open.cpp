#include "network/open.h"

#include <cstdio>

#include "catalog/directory.h"
#include "catalog/model.h"
#include "network/closed_form.h"
#include "network/environment.h"
#include "network/flow_network.h"

namespace maya::network {

Status check(const catalog::Cluster& c, int world_size) {
  if (world_size < 1)
    return Error{"a job needs at least one rank, found " + std::to_string(world_size)};
  if (world_size > c.world_size())
    return Error{"the job has " + std::to_string(world_size) + " ranks but " + c.name + " has " +
                 std::to_string(c.world_size()) + " GPUs (" + std::to_string(c.nodes) + " × " +
                 std::to_string(c.gpus_per_node) + "); name more nodes: " + c.name + ":" +
                 std::to_string((world_size + c.gpus_per_node - 1) / c.gpus_per_node)};
  if (c.gpus_per_node > 1 && !(c.intra.gbps > 0))
    return Error{c.name + ": network.intra_gbps is zero, GPUs 0 and 1 cannot reach each other"};
  int island = std::max(c.gpus_per_node, c.nvlink_domain);
  if (world_size > island && !(c.nic.gbps > 0 && c.nics_per_node > 0))
    return Error{c.name + ": GPUs 0 and " + std::to_string(island) +
                 " cannot reach each other: network.nic_gbps or network.nics_per_node is zero"};
  return {};
}

Result<std::unique_ptr<Network>> open_network(const catalog::Cluster& cluster,
                                              const std::map<std::string, std::string>& environment,
                                              Model model) {
  if (auto status = check(cluster, cluster.world_size()); !status) return status.error();
  catalog::Cluster complete = cluster;
  auto directory = catalog::find_directory();
  if (!complete.extra.count("time.start_us")) {  // made by hand, not by the catalogue
    if (!directory) return directory.error();
    auto numbers = catalog::model_numbers(*directory, cluster.gpu,
                                          cluster.fabric.empty() ? "none" : cluster.fabric);
    if (!numbers) return numbers.error();
    for (const auto& [key, value] : *numbers) complete.extra.emplace(key, value);
  }
  auto parameters = parameters_of(complete.extra);
  if (!parameters) return parameters.error();
  auto measured = directory ? Measured::load(*directory + "/network/measured.csv", cluster.gpu.name)
                            : Result<Measured>(Measured{});
  if (!measured) return measured.error();
  std::unique_ptr<Network> network;
  if (model == Model::flow)
    network = std::make_unique<FlowNetwork>(complete, *parameters, environment_of(environment),
                                            *std::move(measured));
  else
    network = std::make_unique<ClosedForm>(complete, *parameters, environment_of(environment),
                                           *std::move(measured));
  return network;
}

std::vector<std::string> environment_notes(const std::map<std::string, std::string>& environment) {
  return environment_of(environment).notes;
}

std::unique_ptr<Network> make_network(const catalog::Cluster& cluster,
                                      const std::map<std::string, std::string>& environment) {
  auto network = open_network(cluster, environment);
  if (network) return *std::move(network);
  std::fprintf(stderr, "maya: %s\n", network.error().message.c_str());
  return nullptr;
}

}  // namespace maya::network
