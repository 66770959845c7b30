// The numbers of the network model (catalog/network/*.toml) that hold for one cluster.
#pragma once

#include <map>
#include <string>

#include "maya/catalog.h"
#include "maya/result.h"

namespace maya::catalog {

// nccl.toml, gpu-<architecture>.toml, gpu-<name>.toml, fabric-<fabric>.toml of directory/network: a
// later file replaces what an earlier one says, and may not bring keys that nccl.toml does not
// know.
Result<std::map<std::string, double>> model_numbers(const std::string& directory, const Gpu& gpu,
                                                    const std::string& fabric);

}  // namespace maya::catalog
