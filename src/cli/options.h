// Options that several verbs share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "predict/predict.h"

namespace maya::cli {

// Options of verbs that predict from a recording: --cluster, --set, --steps, --calibration.
struct PredictOptions {
  std::string cluster, calibration, steps{"auto"};
  std::vector<std::string> settings;
  bool unfold{};
  void add_to(CLI::App& verb);
  // A --set that is not key=value is an error.
  Result<predict::Options> parsed() const;
};

}  // namespace maya::cli
