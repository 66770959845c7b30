// Finds the files of the catalogue.
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::catalog {

// Looks in $MAYA_CATALOG, then beside the binary that contains this code (an installation, a Python
// wheel, a build tree), then in the source tree it was built from.
Result<std::string> find_directory();

}  // namespace maya::catalog
