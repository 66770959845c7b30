// run.toml: what was run, where, with which versions, how it ended.
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
  std::string started, ended;  // ISO 8601, UTC; ended empty while it runs
  std::optional<int> exit_code;
  int stop_after{};   // steps after which the run was to be ended; 0: by itself
  bool stopped{};     // and it was: its ranks may have come to different places
  int recordings{};   // ranks that touched the device
  std::string clock;  // "virtual": the command read the cluster's time; empty: this machine's
  std::vector<std::string> clock_notes;  // how virtual time went
  double benchmark_us{};                 // of the recording host, see host_speed.h
};

std::string to_toml(const RunFile& run);
std::string now_utc();

}  // namespace maya::launch
