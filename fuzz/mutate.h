// What each fuzz target is started from: small valid inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace maya::fuzz {

std::vector<std::string> seeds();

}  // namespace maya::fuzz
