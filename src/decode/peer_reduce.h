// Kernels in which the ranks of a job wait for each other.
#pragma once

#include <string>

namespace maya::decode {

// Ranks that meet in a kernel of this name (demangled); 0: it is none of these.
int meeting_ranks(const std::string& demangled);

}  // namespace maya::decode
