#include "launch/failed_ranks.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>

namespace maya::launch {

namespace fs = std::filesystem;

std::optional<FailedRank> first_failed_rank(const std::string& run_directory) {
  std::optional<FailedRank> first;
  fs::file_time_type earliest;
  std::error_code ignored;
  constexpr std::string_view before = "failed-";
  for (const auto& entry : fs::directory_iterator(run_directory + "/exchange", ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(before)) continue;
    const auto time = entry.last_write_time(ignored);
    if (ignored || (first && time >= earliest)) continue;
    FailedRank failed;
    std::from_chars(name.data() + before.size(), name.data() + name.size(), failed.rank);
    std::ifstream file(entry.path());
    if (!(file >> failed.code)) continue;
    file.get();
    std::getline(file, failed.error);
    first = failed;
    earliest = time;
  }
  return first;
}

std::string words(const FailedRank& failed) {
  return fmt::format("rank {} failed first, with code {}{}{}", failed.rank, failed.code,
                     failed.error.empty() ? "" : ": ", failed.error);
}

}  // namespace maya::launch
