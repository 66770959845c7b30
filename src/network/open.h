// Makes a network, with an error if it cannot be made and notes about what it ignores.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "maya/network.h"
#include "maya/result.h"

namespace maya::network {

enum class Model { closed_form, flow };

// make_network with an error instead of a null pointer.
Result<std::unique_ptr<Network>> open_network(
    const catalog::Cluster& cluster, const std::map<std::string, std::string>& environment = {},
    Model model = Model::closed_form);

// One line for each NCCL_* variable that is unknown or has a value that NCCL would reject.
std::vector<std::string> environment_notes(const std::map<std::string, std::string>& environment);

// Checks that a job of `world_size` ranks fits and that every pair of GPUs can communicate.
Status check(const catalog::Cluster& cluster, int world_size);

}  // namespace maya::network
