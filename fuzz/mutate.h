// The seeds of each fuzz target: small valid inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace maya::fuzz {

std::vector<std::string> seeds();

// Adds the files of a folder of the source tree with this extension and less than this size, in
// order of their names, so that every machine tries the same inputs.
void add_files(std::vector<std::string>& seeds, const std::string& folder,
               const std::string& extension, std::uintmax_t bytes);

}  // namespace maya::fuzz
