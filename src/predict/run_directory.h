// A run directory as `maya run` left it: run.toml and the recordings of the ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "maya/result.h"
#include "maya/trace.h"

namespace maya::predict {

// The part of run.toml that a prediction needs. launch/run_file.h writes the file. Unknown keys are
// ignored.
struct RunFile {
  std::string command;  // the words, joined by spaces
  std::string cluster;  // empty: there is no run.toml
  int exit_code{};      // of the command
  bool stopped{};       // ended by --stop-after; the ranks may have stopped at different places
  std::vector<std::int32_t> stand_in;  // ranks.stand_in, for ranks that did not run
  bool virtual_clock{};                // --clock virtual
  std::vector<std::string> notes;
  double recorded_speed{};  // recorded_on.speed: relative to the reference host; 0: not known
  double benchmark_us{};    // recorded_on.benchmark_us, which determines the speed; 0: not known
};

struct Run {
  RunFile file;
  std::vector<std::string> notes;            // for the user: how the recordings were chosen
  std::vector<trace::Recording> recordings;  // by ascending rank
};

Result<Run> read_run(const std::string& directory);

// Duration of the host benchmark on the reference host, from the catalogue; 0: not known.
double reference_benchmark_us(const std::string& catalogue);

}  // namespace maya::predict
