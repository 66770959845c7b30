// What each fuzz target is started from: small valid inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace maya::fuzz {

std::vector<std::string> seeds();

// Adds the files of a folder of the source tree that have this extension and fewer bytes, in order
// of their names: every machine must try the same inputs.
void add_files(std::vector<std::string>& seeds, const std::string& folder,
               const std::string& extension, std::uintmax_t bytes);

}  // namespace maya::fuzz
