// Draws a cluster as text, for `maya clusters NAME`.
#pragma once

#include <string>

#include "maya/catalog.h"

namespace maya::catalog {

std::string draw(const Cluster& cluster);

}  // namespace maya::catalog
