// A GPU the catalogue does not have, from a file of its data sheet: about ten numbers are enough.
#pragma once

#include <string_view>
#include <vector>

#include "catalog/toml_file.h"
#include "maya/catalog.h"

namespace maya::catalog {

// A GPU may be written where a name goes: a path, which ends in .toml or has a slash.
bool is_path(std::string_view spec);
// True of a file that describes a GPU, not a cluster.
bool describes_gpu(const TomlFile& file);
// The GPU of a user's file. What a data sheet does not say (shared memory, registers, a context's
// size, rates of further types) comes from the known part most like it.
Result<Gpu> user_gpu(const TomlFile& file, const std::vector<Gpu>& known);
// A name of `known`, or the path of a user's file (relative to `beside`'s folder if that is given).
Result<Gpu> find_gpu(std::string_view spec, const std::vector<Gpu>& known,
                     const std::string& beside = "");

}  // namespace maya::catalog
