// A run directory as `maya run` left it: run.toml and the recordings of the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "maya/result.h"
#include "maya/trace.h"

namespace maya::predict {

// The part of run.toml a prediction needs. Unknown keys are left to whoever wrote them.
struct RunFile {
  std::string command;                 // words joined
  std::string cluster;                 // empty: run.toml is not there
  int exit_code{};                     // of the command
  bool stopped{};                      // by --stop-after: ranks may end at different places
  std::vector<std::int32_t> stand_in;  // ranks.stand_in, for ranks that did not run
  bool virtual_clock{};                // the command read the cluster's time
  std::vector<std::string> clock_notes;
  double recorded_speed{};  // recorded_on.speed: this host against the reference; 0: not known
  double benchmark_us{};    // recorded_on.benchmark_us, from which the speed follows; 0: not known
};

struct Run {
  RunFile file;
  std::vector<std::string> notes;            // what a user should know of how they were chosen
  std::vector<trace::Recording> recordings;  // by ascending rank
};

Result<Run> read_run(const std::string& directory);

// What the host benchmark takes on the reference host, by the catalogue; 0: it does not say.
double reference_benchmark_us(const std::string& catalogue);

}  // namespace maya::predict
