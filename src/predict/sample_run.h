// Writes a run directory for tests, as `maya run` would: data-parallel training of a small
// transformer.
#pragma once

#include <cstdint>
#include <string>

#include "maya/trace.h"

namespace maya::predict::sample {

struct Shape {
  std::int32_t ranks{4};
  int steps{6}, layers{8};
  std::int64_t batch{4}, sequence{1024}, width{2048};
  bool train{true};  // false: memory is allocated, but nothing is launched
};

trace::Recording recording(std::int32_t rank, const Shape& shape);
void write_recording(const std::string& path, const trace::Recording& recording);
void write_run(const std::string& directory, const Shape& shape,
               const std::string& cluster = "dgx-h100:1");

}  // namespace maya::predict::sample
