// Writes run.toml: what was run, where, with which versions, and how it ended. predict/
// run_directory.h reads it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace maya::launch {

struct RunFile {
  std::vector<std::string> command;  // stored without credentials
  std::string directory;             // working directory of the command
  std::string cluster;               // as given, with the node count that was used
  std::string gpu;
  int nodes{1}, gpus_per_node{1};
  std::string started, ended;  // ISO 8601, UTC; `ended` is empty while the command runs
  std::optional<int> exit_code;
  int stop_after{};   // --stop-after; 0: not given
  bool stopped{};     // ended by --stop-after; the ranks may have stopped at different places
  int recordings{};   // number of ranks that used the device
  std::string clock;  // "virtual" with --clock virtual; else empty
  std::vector<std::string> notes;  // for the user, see launch/job.h
  double benchmark_us{};           // of this machine, see host_speed.h
};

std::string to_toml(const RunFile& run);
std::string now_utc();

}  // namespace maya::launch
