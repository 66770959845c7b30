// "did you mean …?" for a misspelled name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maya::catalog {

// ": did you mean h100-sxm or h100-pcie?", or the list of all names when nothing is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

}  // namespace maya::catalog
