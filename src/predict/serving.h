// What a client of a serving engine measured in virtual time: serving.json of the run directory,
// which `maya serve-bench` leaves there (python/maya/serve_bench).
#pragma once

#include <string>

#include "maya/result.h"

namespace maya::predict {

struct Serving {
  std::string json;  // empty: the run has none
  bool answered{};   // requests of a load were answered
};

// The file's content, with the price of a million output tokens added to each load where an hour of
// the GPUs has a price. It is a file that anybody may have written: an error says what is wrong
// with it.
Result<Serving> serving_of(const std::string& directory, double usd_per_hour);

}  // namespace maya::predict
