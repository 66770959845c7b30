// Ends the name of a kernel whose sizes could not be read, and were assumed: reports tell how much
// of the time rests on such kernels.
#pragma once

#include <string_view>

namespace maya {

constexpr std::string_view sizes_assumed = " [sizes assumed]";

}  // namespace maya
