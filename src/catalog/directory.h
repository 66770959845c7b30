// Where the catalogue's files are.
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::catalog {

// MAYA_CATALOG, then beside the binary this code is in (an installation, a Python wheel, a source
// tree), then the tree it was built from.
Result<std::string> find_directory();

}  // namespace maya::catalog
