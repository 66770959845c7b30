// The names people write for what the catalogue knows: "H100", "RTX 4090", "DGX A100". Case, blanks
// and hyphens do not count, nor does the brand before a GPU's name.
#pragma once

#include <string_view>
#include <vector>

#include "maya/catalog.h"

namespace maya::catalog {

// By its name, by what else it is called, or by the name it is sold under, in this order; null when
// there is none.
const Gpu* gpu_called(std::string_view name, const std::vector<Gpu>& known);
const Cluster* cluster_called(std::string_view name, const std::vector<Cluster>& known);

}  // namespace maya::catalog
