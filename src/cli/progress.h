// What `maya run` shows while the command runs: the step it has come to and what the recording so
// far predicts.
#pragma once

#include <cstdint>
#include <string>

#include "launch/job.h"
#include "predict/predict.h"

namespace maya::cli {

class Progress {
 public:
  Progress(std::string directory, predict::Options options);
  // One line without a line break.
  std::string line(const launch::Moment& moment);

 private:
  void look();  // predicts from the recording, for at most a twentieth of the time

  std::string directory_;
  predict::Options options_;
  double next_{};  // second at which to look again
  std::uint32_t steps_{};
  double step_ms_{};
  std::int64_t peak_bytes_{}, capacity_bytes_{};
};

}  // namespace maya::cli
