// Finds GPUs by the names that people use: "H100", "RTX 4090". Case, blanks, hyphens and the brand
// before the name are ignored.
#pragma once

#include <string_view>
#include <vector>

#include "maya/catalog.h"

namespace maya::catalog {

// Compares with the name, then with aliases, then with the marketing name. Null if there is no such
// GPU.
const Gpu* gpu_called(std::string_view name, const std::vector<Gpu>& known);
const Cluster* cluster_called(std::string_view name, const std::vector<Cluster>& known);

}  // namespace maya::catalog
