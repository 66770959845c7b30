// A resolved cluster as key=value lines: the launcher writes it, the preloaded device library reads
// it in the training process, where TOML and the catalogue's folder have no place.
#pragma once

#include <string>
#include <string_view>

#include "maya/catalog.h"

namespace maya::catalog {

std::string to_flat(const Cluster& cluster);
// Unknown keys and damaged lines are errors that give the line.
Result<Cluster> parse_flat(std::string_view text);

}  // namespace maya::catalog
