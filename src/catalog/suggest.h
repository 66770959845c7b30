// "did you mean …?" for a misspelled name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maya::catalog {

// ": did you mean h100-sxm or h100-pcie?"; when nothing is near, `elsewhere`, which says where to
// look, or else the list of all names.
std::string suggestion(std::string_view name, const std::vector<std::string>& known,
                       const std::string& elsewhere = {});

}  // namespace maya::catalog
