// Suggestions for misspelled names: "did you mean …?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maya::catalog {

// Returns ": did you mean h100-sxm or h100-pcie?". If no name is similar, returns `elsewhere`,
// which says where to look, or if that is empty the list of all names.
std::string suggestion(std::string_view name, const std::vector<std::string>& known,
                       const std::string& elsewhere = {});

}  // namespace maya::catalog
