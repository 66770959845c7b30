// A resolved cluster as key=value lines. The launcher writes it, and the preloaded device library
// reads it in the training process, which has no TOML parser and no access to the catalogue.
#pragma once

#include <string>
#include <string_view>

#include "maya/catalog.h"

namespace maya::catalog {

std::string to_flat(const Cluster& cluster);
// Unknown keys and damaged lines are errors that contain the line number.
Result<Cluster> parse_flat(std::string_view text);

}  // namespace maya::catalog
