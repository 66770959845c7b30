// The parameters of the network model (catalog/network/*.toml) for one cluster.
#pragma once

#include <map>
#include <string>

#include "maya/catalog.h"
#include "maya/result.h"

namespace maya::catalog {

// Reads nccl.toml, gpu-<architecture>.toml, gpu-<name>.toml and fabric-<fabric>.toml of
// directory/network. A later file overrides an earlier one and may only have keys that are in
// nccl.toml.
Result<std::map<std::string, double>> model_numbers(const std::string& directory, const Gpu& gpu,
                                                    const std::string& fabric);

}  // namespace maya::catalog
