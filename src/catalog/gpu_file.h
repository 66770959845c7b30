// Reads a GPU that is not in the catalogue from a file with figures of its data sheet. About ten
// figures are enough.
#pragma once

#include <string_view>
#include <vector>

#include "catalog/toml_file.h"
#include "maya/catalog.h"

namespace maya::catalog {

// Whether a GPU is given as a path and not as a name: it ends in .toml or contains a slash.
bool is_path(std::string_view spec);
// Whether a file describes a GPU and not a cluster.
bool describes_gpu(const TomlFile& file);
// The GPU of a user's file. Figures that a data sheet does not have (shared memory, registers, size
// of a context, rates of other types) are copied from the most similar known GPU.
Result<Gpu> user_gpu(const TomlFile& file, const std::vector<Gpu>& known);
// `spec` is a name in `known` or the path of a user's file (relative to the folder of `beside`, if
// given).
Result<Gpu> find_gpu(std::string_view spec, const std::vector<Gpu>& known,
                     const std::string& beside = "");

}  // namespace maya::catalog
