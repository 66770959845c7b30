// Ranks that ended with an error, as they reported it themselves (session/departure.cpp).
#pragma once

#include <optional>
#include <string>

namespace maya::launch {

struct FailedRank {
  int rank{}, code{};
  std::string error;  // the line it printed; may be empty
};

// The rank that failed first, unless it was started again.
std::optional<FailedRank> first_failed_rank(const std::string& run_directory);

// "rank 3 failed first, with code 1: ValueError: no such layer"
std::string words(const FailedRank& failed);

}  // namespace maya::launch
